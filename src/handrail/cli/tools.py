"""tools: what a session in this place offers."""

from argparse import Namespace

from handrail.cli.exits import OK
from handrail.cli.output import answer, answer_json, cut, table
from handrail.cli.preferences import folder_to_look_at, has_servers, loaded_for
from handrail.protocol.tool import ToolSpec, anthropic_tool, describe, mcp_tool, openai_tool
from handrail.protocol.wire import encode
from handrail.runtime.offering import offered


def run(options: Namespace) -> int:
    """Lists the tools, for people, in one of four JSON forms, or as a guide."""
    specs = _specs(options)
    if options.json:
        answer_json(encode([describe(spec) for spec in specs]))
    elif options.openai:
        answer_json(encode([openai_tool(spec) for spec in specs]))
    elif options.anthropic:
        answer_json(encode([anthropic_tool(spec) for spec in specs]))
    elif options.mcp:
        answer_json(encode([mcp_tool(spec) for spec in specs]))
    elif options.guide:
        from handrail.agent.prompt.guide import guide  # noqa: PLC0415  few ask

        answer(guide(specs))
    else:
        answer(table([("tool", "version", "permissions", "description"), *map(_row, specs)]))
    return OK


def _specs(options: Namespace) -> list[ToolSpec]:
    folder = folder_to_look_at(options)
    loaded = loaded_for(options, workspace=folder)
    own = [tool.spec for tool in offered(loaded.settings).tools]
    if folder is None or not has_servers(loaded, folder):
        return own
    from handrail.cli.servers import described_tools  # noqa: PLC0415  few have other servers

    return [*own, *described_tools(options, loaded, folder)]


def _row(spec: ToolSpec) -> tuple[str, str, str, str]:
    first_sentence = spec.description.split(". ")[0].rstrip(".")
    return spec.name, spec.version, " ".join(spec.permissions) or "–", cut(first_sentence)
