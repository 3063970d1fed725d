"""config: every setting, its value and where it comes from."""

import os
from argparse import Namespace
from typing import Any

import msgspec

from handrail.cli.exits import OK
from handrail.cli.output import answer, answer_json, note, table
from handrail.cli.preferences import folder_to_look_at, has_servers, with_unknown_tools
from handrail.protocol.schema import DIALECT, flat_schema
from handrail.protocol.wire import encode
from handrail.settings import MANAGED_FILE, REFERENCE, Loaded, Settings, flat, load, state_folder, user_file


def run(options: Namespace) -> int:
    """Shows the settings and the rules in force, or the schema of the file."""
    if options.schema:
        answer_json(msgspec.json.format(encode(settings_schema()), indent=2))
        return OK
    folder = folder_to_look_at(options)
    loaded = with_unknown_tools(load(os.environ, {}, folder))
    servers = _servers(loaded, folder)
    if options.json:
        answer_json(encode({"schema": "handrail.config/1", **as_data(loaded, servers)}))
        return OK
    answer(as_text(loaded, servers))
    for text in loaded.notes:
        note(text)
    for what, path in _places(loaded).items():
        note(f"{what}: {path}")
    return OK


def as_text(loaded: Loaded, servers: dict[str, str]) -> str:
    """The settings as a table, and servers and rules as others where there are any."""
    rows = [(key, _shown(value), loaded.sources[key]) for key, value in flat(loaded.settings).items()]
    text = table([("setting", "value", "source"), *rows])
    if servers:
        text += f"\n{table([('server', 'what it is'), *servers.items()])}"
    if not loaded.rules:
        return text
    words = {"allow": "allow", "confirm": "ask", "deny": "deny"}
    rules = [(rule.id, words[rule.verdict], rule.tool, rule.pattern, rule.source) for rule in loaded.rules]
    return f"{text}\n{table([('rule', 'says', 'tool', 'pattern', 'source'), *rules])}"


def as_data(loaded: Loaded, servers: dict[str, str]) -> dict[str, Any]:
    """The same and more, for programs."""
    values = flat(loaded.settings)
    return {
        "settings": {key: {"value": value, "source": loaded.sources[key]} for key, value in values.items()},
        "rules": loaded.rules,
        "servers": servers,
        "notes": loaded.notes,
        "ignored": loaded.ignored,
        "project": loaded.project,
        "userFile": user_file(os.environ),
        "managedFile": MANAGED_FILE,
        "stateFolder": state_folder(os.environ),
    }


def _servers(loaded: Loaded, folder: str | None) -> dict[str, str]:
    """Other MCP servers by name, in words that hold no secret."""
    if not (has_servers(loaded, folder) if folder else loaded.servers):
        return {}
    from handrail.cli.server_list import listed_servers  # noqa: PLC0415  few have one

    return listed_servers(loaded, folder)


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of the settings file, with what each setting means."""
    from handrail.settings.reference import RULE, SERVER  # noqa: PLC0415  only the schema needs these forms
    from handrail.settings.rule_tables import RuleTable  # noqa: PLC0415
    from handrail.settings.servers import ServerTable  # noqa: PLC0415

    schema = _portable(flat_schema(Settings))
    for key, entry in REFERENCE.items():
        place = schema
        for part in key.split("."):
            place = place["properties"][part]
        place["description"] = entry.help
    rule = _portable(flat_schema(RuleTable))
    for key, entry in RULE.items():
        rule["properties"][key]["description"] = entry.help
    rule["oneOf"] = [{"required": [verdict]} for verdict in ("allow", "ask", "deny")]
    server = _portable(flat_schema(ServerTable))
    for key, entry in SERVER.items():
        server["properties"][key]["description"] = entry.help
    schema["properties"]["mcp"]["properties"]["servers"] = {"type": "object", "additionalProperties": server}
    schema["properties"]["rule"] = {"type": "array", "items": rule}
    return {"$schema": DIALECT, "title": "handrail settings", **schema}


def _places(loaded: Loaded) -> dict[str, str]:
    places = {"user file": user_file(os.environ), "state folder": state_folder(os.environ)}
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
