"""`handrail config`: the settings with their values, checked."""

import os
import re
from argparse import ArgumentParser
from types import SimpleNamespace
from typing import Any, Literal

import msgspec

from handrail.cli.context import add_unknown_tool_notes, has_servers, resolve_project_folder
from handrail.cli.exits import OK, CommandFailed
from handrail.cli.format import print_wrapped
from handrail.cli.output import print_json, print_note, print_out, render_table
from handrail.cli.parser import Command, add_workspace_option
from handrail.protocol.schema import DIALECT, build_flat_schema
from handrail.protocol.wire import encode
from handrail.settings import MANAGED_FILE, LoadedSettings, load, resolve_state_folder, resolve_user_file
from handrail.settings.errors import SettingsError, describe_refused
from handrail.settings.mcp_json import McpJson, load_mcp_json, merge_server_tables
from handrail.settings.mcp_servers import SERVER, ServerTable, describe_server
from handrail.settings.model import DEFAULTS, Settings, list_settings
from handrail.settings.paths import MCP_FILE, PROJECT_FILE
from handrail.settings.toml_file import RULE, RuleTable, read_layer

_FILE_PATH = re.compile(r"(?<= file) /.*?(?= and |$)")
"""The path of a settings file in a source. Notes below the table name it."""
_VERDICTS = {"allow": "allow", "confirm": "ask", "deny": "deny"}


def run(options: SimpleNamespace) -> int:
    """Shows the settings and rules in force, or the schema of the settings file."""
    if options.schema:
        print_json(msgspec.json.format(encode(_build_settings_schema()), indent=2))
        return OK
    folder = resolve_project_folder(options)
    try:
        loaded = add_unknown_tool_notes(load(os.environ, {}, folder), folder)
    except SettingsError as error:
        raise CommandFailed("\n".join(_list_faults(folder) or [str(error)]), then=error.then) from None
    if options.key is not None:
        return _print_setting(options, loaded)
    servers = _describe_servers(loaded, folder)
    if options.json:
        print_json(encode({"schema": "handrail.config/1", **build_config_data(loaded, servers)}))
        return OK
    print_out(render_config(loaded, servers))
    for text in loaded.notes:
        print_note(text)
    if loaded.managed:
        print_note(f"managed file: {MANAGED_FILE}")
    if loaded.project:
        trust = "trusted" if loaded.project.trusted else "not trusted"
        print_note(f"project file: {loaded.project.path} ({trust})")
    print_note(f"user file: {resolve_user_file(os.environ)}")
    print_note(f"state folder: {resolve_state_folder(os.environ)}")
    return OK


def _list_faults(folder: str | None) -> list[str]:
    """What is wrong with each settings file. `load` stops at the first one."""
    files: dict[Literal["managed", "user", "project"], str] = {
        "managed": MANAGED_FILE,
        "user": resolve_user_file(os.environ),
        "project": os.path.join(folder, PROJECT_FILE) if folder else "",
    }
    faults: list[str] = []
    for kind, path in files.items():
        try:
            read_layer(path, kind) if os.path.lexists(path) else None
        except SettingsError as error:
            faults.append(str(error))
    return faults


def _print_setting(options: SimpleNamespace, loaded: LoadedSettings) -> int:
    """Explains a setting, or all of a section."""
    values = loaded.settings.flatten()
    keys = [key for key in values if options.key in {key, key.partition(".")[0]}]
    if not keys:
        raise CommandFailed(" ".join(describe_refused({options.key: None})), then="handrail config")
    facts = list[dict[str, Any]]()
    for key in keys:
        field, line = list_settings()[key], loaded.lines.get(key)
        facts.append(
            {"key": key, "value": values[key], "help": field.help, "source": loaded.sources[key], "line": line}
        )
        facts[-1] |= {"default": DEFAULTS[key], "allowed": field.allowed}
    if options.json:
        print_json(encode({"schema": "handrail.config-setting/1", "settings": facts}))
        return OK
    for fact in facts:
        place = f"{fact['source']}, line {fact['line']}" if fact["line"] else fact["source"]
        rows = [("source", place), ("default", _render(fact["default"])), ("allowed", fact["allowed"])]
        start = "\n" if fact is not facts[0] else ""
        print_wrapped(f"{start}{fact['key']} = {_render(fact['value'])}\n{fact['help']}\n{render_table(rows)}")
    for ignored in (one for one in loaded.ignored if one.key in keys):
        print_note(ignored.note)
    return OK


def _render(value: object) -> str:
    return "–" if value is None else encode(value).decode()


def render_config(loaded: LoadedSettings, servers: dict[str, str]) -> str:
    sources = {key: _FILE_PATH.sub("", source) for key, source in loaded.sources.items()}
    rows = [(key, sources[key], _render(value)) for key, value in loaded.settings.flatten().items()]
    text = render_table([("setting", "source", "value"), *rows])
    if servers:
        text += f"\n{render_table([('server', 'what it is'), *servers.items()])}"
    if loaded.rules:
        rules = [(rule.id, _VERDICTS[rule.verdict], rule.tool, rule.pattern, rule.source) for rule in loaded.rules]
        text += f"\n{render_table([('rule', 'says', 'tool', 'pattern', 'source'), *rules])}"
    return text


def build_config_data(loaded: LoadedSettings, servers: dict[str, str]) -> dict[str, Any]:
    values = loaded.settings.flatten()
    return {
        "settings": {key: {"value": value, "source": loaded.sources[key]} for key, value in values.items()},
        "rules": loaded.rules,
        "servers": servers,
        "notes": loaded.notes,
        "ignored": loaded.ignored,
        "project": loaded.project,
        "userFile": resolve_user_file(os.environ),
        "managedFile": MANAGED_FILE,
        "stateFolder": resolve_state_folder(os.environ),
    }


# Other MCP servers


def _describe_servers(loaded: LoadedSettings, folder: str | None) -> dict[str, str]:
    """The servers of the settings and of `.mcp.json` by name, described without secrets. None is started."""
    if not (has_servers(loaded, folder) if folder else loaded.servers):
        return {}
    brought = load_mcp_json(folder, resolve_state_folder(os.environ)) if folder and not loaded.servers_fixed else None
    servers = {name: _describe_brought(brought, table) for name, table in brought.servers.items()} if brought else {}
    for name, table in loaded.servers.items():
        if not table.is_extension:
            servers[name] = describe_server(table)
        elif brought is not None and name in brought.servers:
            servers[name] = _describe_brought(brought, merge_server_tables(brought.servers[name], table))
        else:
            servers[name] = f"{describe_server(table)}; this command does not exist here"
    return servers


def _describe_brought(brought: McpJson, table: ServerTable) -> str:
    return f"{describe_server(table)}; from {MCP_FILE}{'' if brought.trusted else ', not used until you trust it'}"


# The schema of the settings file


def _build_settings_schema() -> dict[str, Any]:
    """The JSON Schema of the settings file, with the help of each setting."""
    schema = _to_portable(build_flat_schema(Settings))
    for key, entry in list_settings().items():
        place = schema
        for part in key.split("."):
            place = place["properties"][part]
        place["description"] = entry.help
    rule = _to_portable(build_flat_schema(RuleTable))
    for key, entry in RULE.items():
        rule["properties"][key]["description"] = entry.help
    rule["oneOf"] = [{"required": [verdict]} for verdict in ("allow", "ask", "deny")]
    server = _to_portable(build_flat_schema(ServerTable))
    for key, entry in SERVER.items():
        server["properties"][key]["description"] = entry.help
    schema["properties"]["mcp"]["properties"]["servers"] = {"type": "object", "additionalProperties": server}
    schema["properties"]["rule"] = {"type": "array", "items": rule}
    return {"$schema": DIALECT, "title": "handrail settings", **schema}


def _to_portable(node: Any) -> Any:
    """Patterns as editors read them: `^` and `$` for Python's `\\A` and `\\Z`."""
    if isinstance(node, dict):
        return {key: _to_portable(value) for key, value in node.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(node, list):
        return [_to_portable(item) for item in node]  # pyright: ignore[reportUnknownVariableType]
    return node.replace(r"\A", "^").replace(r"\Z", "$") if isinstance(node, str) else node


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", nargs="?", help="explain this setting, such as limits.exec or limits")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--schema", action="store_true", help="the JSON Schema of the settings file")
    form.add_argument("--json", action="store_true", help="print one JSON object")
    add_workspace_option(parser)


COMMANDS = {
    "config": Command(
        run, _add_arguments, ("handrail config limits.exec", "handrail config --schema > .handrail.schema.json")
    ),
}
