"""config: every setting, its value and where it comes from."""

import os
from argparse import Namespace
from typing import Any

import msgspec

from handrail.cli.exits import OK
from handrail.cli.output import print_json, print_note, print_out, render_table
from handrail.cli.preferences import add_unknown_tool_notes, has_servers, resolve_project_folder
from handrail.protocol.schema import DIALECT, build_flat_schema
from handrail.protocol.wire import encode
from handrail.settings import (
    MANAGED_FILE,
    REFERENCE,
    LoadedSettings,
    Settings,
    load,
    resolve_state_folder,
    resolve_user_file,
)


def run(options: Namespace) -> int:
    """Shows the settings and the rules in force, or the schema of the file."""
    if options.schema:
        print_json(msgspec.json.format(encode(build_settings_schema()), indent=2))
        return OK
    folder = resolve_project_folder(options)
    loaded = add_unknown_tool_notes(load(os.environ, {}, folder))
    servers = _servers(loaded, folder)
    if options.json:
        print_json(encode({"schema": "handrail.config/1", **build_config_data(loaded, servers)}))
        return OK
    print_out(render_config(loaded, servers))
    for text in loaded.notes:
        print_note(text)
    for what, path in _places(loaded).items():
        print_note(f"{what}: {path}")
    return OK


def render_config(loaded: LoadedSettings, servers: dict[str, str]) -> str:
    """The settings as a table, and servers and rules as others where there are any."""
    rows = [(key, _shown(value), loaded.sources[key]) for key, value in loaded.settings.flatten().items()]
    text = render_table([("setting", "value", "source"), *rows])
    if servers:
        text += f"\n{render_table([('server', 'what it is'), *servers.items()])}"
    if not loaded.rules:
        return text
    words = {"allow": "allow", "confirm": "ask", "deny": "deny"}
    rules = [(rule.id, words[rule.verdict], rule.tool, rule.pattern, rule.source) for rule in loaded.rules]
    return f"{text}\n{render_table([('rule', 'says', 'tool', 'pattern', 'source'), *rules])}"


def build_config_data(loaded: LoadedSettings, servers: dict[str, str]) -> dict[str, Any]:
    """The same and more, for programs."""
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


def _servers(loaded: LoadedSettings, folder: str | None) -> dict[str, str]:
    """Other MCP servers by name, in words that hold no secret."""
    if not (has_servers(loaded, folder) if folder else loaded.servers):
        return {}
    from handrail.cli.server_list import describe_servers  # noqa: PLC0415  few have one

    return describe_servers(loaded, folder)


def build_settings_schema() -> dict[str, Any]:
    """The JSON Schema of the settings file, with what each setting means."""
    from handrail.settings.mcp_servers import SERVER, ServerTable  # noqa: PLC0415  only the schema needs these forms
    from handrail.settings.toml_file import RULE, RuleTable  # noqa: PLC0415

    schema = _portable(build_flat_schema(Settings))
    for key, entry in REFERENCE.items():
        place = schema
        for part in key.split("."):
            place = place["properties"][part]
        place["description"] = entry.help
    rule = _portable(build_flat_schema(RuleTable))
    for key, entry in RULE.items():
        rule["properties"][key]["description"] = entry.help
    rule["oneOf"] = [{"required": [verdict]} for verdict in ("allow", "ask", "deny")]
    server = _portable(build_flat_schema(ServerTable))
    for key, entry in SERVER.items():
        server["properties"][key]["description"] = entry.help
    schema["properties"]["mcp"]["properties"]["servers"] = {"type": "object", "additionalProperties": server}
    schema["properties"]["rule"] = {"type": "array", "items": rule}
    return {"$schema": DIALECT, "title": "handrail settings", **schema}


def _places(loaded: LoadedSettings) -> dict[str, str]:
    places = {"user file": resolve_user_file(os.environ), "state folder": resolve_state_folder(os.environ)}
    if loaded.project:
        trust = "trusted" if loaded.project.trusted else "not trusted"
        places = {"project file": f"{loaded.project.path} ({trust})", **places}
    return {"managed file": MANAGED_FILE, **places} if loaded.managed else places


def _shown(value: object) -> str:
    """The value as a settings file would have it, as far as one can be written there."""
    return "–" if value is None else encode(value).decode()


def _portable(node: Any) -> Any:
    """Patterns as editors know them: `^` and `$` for Python's `\\A` and `\\Z`; nothing about how structs are named."""
    if isinstance(node, dict):
        return {key: _portable(value) for key, value in node.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(node, list):
        return [_portable(item) for item in node]  # pyright: ignore[reportUnknownVariableType]
    return node.replace(r"\A", "^").replace(r"\Z", "$") if isinstance(node, str) else node
