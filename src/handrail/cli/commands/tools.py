"""`handrail tools`: the tools that a session here offers."""

import os
from argparse import ArgumentParser
from types import SimpleNamespace

import msgspec

from handrail.cli.context import add_dialect_option, has_servers, load_settings, resolve_project_folder
from handrail.cli.exits import OK
from handrail.cli.files import OutFolder
from handrail.cli.output import print_json, print_note, print_out, render_table
from handrail.cli.parser import Command, add_workspace_option
from handrail.inspection import list_server_specs, list_tool_specs
from handrail.protocol.schema import (
    DIALECT,
    build_flat_schema,
    build_wire_schemas,
    describe,
    read_wire_samples,
    to_anthropic_tool,
    to_mcp_tool,
    to_openai_tool,
)
from handrail.protocol.text import to_one_line, truncate
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import Json, encode
from handrail.settings import Settings


def run(options: SimpleNamespace) -> int:
    """Lists the tools: for people, in one of four JSON forms, or as a guide."""
    specs = _list_specs(options)
    if options.json:
        print_json(encode([describe(spec) for spec in specs]))
    elif options.openai:
        print_json(encode([to_openai_tool(spec) for spec in specs]))
    elif options.anthropic:
        print_json(encode([to_anthropic_tool(spec) for spec in specs]))
    elif options.mcp:
        print_json(encode([to_mcp_tool(spec) for spec in specs]))
    elif options.guide:
        from handrail.agent.prompt import render_guide  # noqa: PLC0415  only for the guide

        print_out(render_guide(specs))
    else:
        print_out(render_table([("tool", "version", "permissions", "description"), *map(_build_row, specs)]))
        if options.dialect and not options.quiet:
            from handrail.dialects.surface import list_missing_tools  # noqa: PLC0415  few speak a dialect

            if missing := list_missing_tools(Settings(dialect=options.dialect)):
                print_note(f"not available in this version: {', '.join(missing)}")
    return OK


def run_schema(options: SimpleNamespace) -> int:
    """Prints the schemas of the wire and of handrail's own tools in one object, or writes a file for each."""
    from handrail.dialects.adapters import build_event_schemas, render_samples  # noqa: PLC0415  few print schemas

    types, dialects = build_wire_schemas(), build_event_schemas()
    events = {f"events.{name}": {"$schema": DIALECT, "title": name, **own} for name, own in dialects.items()}
    tools = {
        spec.name: {"$schema": DIALECT, "title": spec.name, **build_flat_schema(spec.arguments)}
        for spec in list_tool_specs(Settings())
    }
    if options.out is None:
        print_json(_format_json({"schema": "handrail.schema/1", "types": types, "tools": tools, "dialects": events}))
        return OK
    files = {f"{name}.schema.json": schema for name, schema in types.items()}
    files |= {f"samples/{name}.json": sample for name, sample in read_wire_samples().items()}
    files |= {f"dialects/{name}.schema.json": schema for name, schema in events.items()}
    files |= {f"samples/dialects/events.{name}.json": render_samples(name) for name in dialects}
    files |= {f"tools/{name}.schema.json": schema for name, schema in tools.items()}
    folder = OutFolder(options.out)
    for name, content in files.items():
        folder.write(name, _format_json(content) + b"\n")
    if not options.quiet:
        print_out(f"{len(files)} files written to {options.out}\n")
    return OK


def _list_specs(options: SimpleNamespace) -> list[ToolSpec]:
    folder = resolve_project_folder(options)
    loaded = load_settings(options, workspace=folder, flags={"dialect": options.dialect})
    own = list_tool_specs(loaded.settings, loaded.tool_files)
    if folder is None or not has_servers(loaded, folder):
        return own
    from handrail.mcp.client.sources import find_sources  # noqa: PLC0415  few have other servers

    found = find_sources(loaded, folder, os.environ)
    specs, statuses = list_server_specs(found.sources, loaded)
    problems = [
        f"{one.server}: {problem}" for one in statuses if one.server not in found.unusable for problem in one.problems
    ]
    if not options.quiet:
        for text in (*found.notes, *problems):
            print_note(to_one_line(text))
    return [*own, *specs]


def _build_row(spec: ToolSpec) -> tuple[str, str, str, str]:
    first_sentence = spec.description.split(". ")[0].rstrip(".")
    return spec.name, spec.version, " ".join(spec.permissions) or "–", truncate(first_sentence, 100)


def _format_json(value: Json) -> bytes:
    return msgspec.json.format(encode(value), indent=2)


def _add_arguments(parser: ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the descriptions with their schemas")
    form.add_argument("--openai", action="store_true", help="as a tool list for OpenAI")
    form.add_argument("--anthropic", action="store_true", help="as a tool list for Anthropic")
    form.add_argument("--mcp", action="store_true", help="as a tool list for MCP")
    form.add_argument("--guide", action="store_true", help="a guide to the tools, as Markdown")
    add_dialect_option(parser)
    add_workspace_option(parser)


def _add_schema_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", help="write one file a schema, and samples, into this folder")


COMMANDS = {
    "tools": Command(run, _add_arguments, ("handrail tools", "handrail tools --openai > tools.json")),
    "schema": Command(
        run_schema, _add_schema_arguments, ("handrail schema | jq .types.tool_result", "handrail schema --out schemas")
    ),
}
