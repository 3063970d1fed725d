"""config: every setting, its value and where it comes from."""

import os
from argparse import Namespace
from typing import Any

import msgspec

from handrail.cli.exits import OK
from handrail.cli.output import answer, answer_json, note, table
from handrail.protocol.schema import DIALECT, flat_schema
from handrail.protocol.wire import encode
from handrail.settings import REFERENCE, Settings, flat, load, state_folder, user_file


def run(options: Namespace) -> int:
    """Shows the settings in force, or the schema of the file."""
    if options.schema:
        answer_json(msgspec.json.format(encode(settings_schema()), indent=2))
        return OK
    loaded = load(os.environ, {})
    values = flat(loaded.settings)
    if options.json:
        settings = {key: {"value": value, "source": loaded.sources[key]} for key, value in values.items()}
        places = {"userFile": user_file(os.environ), "stateFolder": state_folder(os.environ)}
        answer_json(encode({"schema": "handrail.config/1", "settings": settings, "notes": loaded.notes, **places}))
        return OK
    rows = [(key, _shown(value), loaded.sources[key]) for key, value in values.items()]
    answer(table([("setting", "value", "source"), *rows]))
    for text in loaded.notes:
        note(text)
    if not options.quiet:
        note(f"user file: {user_file(os.environ)}")
        note(f"state folder: {state_folder(os.environ)}")
    return OK


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of the settings file, with what each setting means."""
    schema = _portable(flat_schema(Settings))
    for key, entry in REFERENCE.items():
        place = schema
        for part in key.split("."):
            place = place["properties"][part]
        place["description"] = entry.help
    return {"$schema": DIALECT, "title": "handrail settings", **schema}


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
