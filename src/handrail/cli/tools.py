"""tools: what a session in this place offers."""

from argparse import Namespace

from handrail.cli.context import has_servers, load_settings, resolve_project_folder
from handrail.cli.exits import OK
from handrail.cli.output import print_json, print_out, render_table
from handrail.protocol.schema import describe, to_anthropic_tool, to_mcp_tool, to_openai_tool
from handrail.protocol.text import truncate
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import encode
from handrail.runtime.registry import build_tool_set


def run(options: Namespace) -> int:
    """Lists the tools, for people, in one of four JSON forms, or as a guide."""
    specs = _specs(options)
    if options.json:
        print_json(encode([describe(spec) for spec in specs]))
    elif options.openai:
        print_json(encode([to_openai_tool(spec) for spec in specs]))
    elif options.anthropic:
        print_json(encode([to_anthropic_tool(spec) for spec in specs]))
    elif options.mcp:
        print_json(encode([to_mcp_tool(spec) for spec in specs]))
    elif options.guide:
        from handrail.agent.prompt import render_guide  # noqa: PLC0415  few ask

        print_out(render_guide(specs))
    else:
        print_out(render_table([("tool", "version", "permissions", "description"), *map(_row, specs)]))
    return OK


def _specs(options: Namespace) -> list[ToolSpec]:
    folder = resolve_project_folder(options)
    loaded = load_settings(options, workspace=folder)
    own = [tool.spec for tool in build_tool_set(loaded.settings).tools]
    if folder is None or not has_servers(loaded, folder):
        return own
    from handrail.cli.servers import list_server_tools  # noqa: PLC0415  few have other servers

    return [*own, *list_server_tools(options, loaded, folder)]


def _row(spec: ToolSpec) -> tuple[str, str, str, str]:
    first_sentence = spec.description.split(". ")[0].rstrip(".")
    return spec.name, spec.version, " ".join(spec.permissions) or "–", truncate(first_sentence, 100)
