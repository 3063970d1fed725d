"""Reads one settings file as a layer: all its keys known, all its values allowed."""

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from handrail.settings.check import find_invalid_values, flatten
from handrail.settings.document import File, FileKind, read_document, refuse
from handrail.settings.errors import quote_path
from handrail.settings.layers import Layer
from handrail.settings.lines import find_key_lines, find_lines_below

if TYPE_CHECKING:
    from handrail.policy.rules.rule import Rule
    from handrail.settings.servers import ServerTable


def read_layer(path: str, kind: FileKind) -> tuple[Layer, str]:
    """The layer and the SHA-256 of the file; a SettingsError with all that is wrong with it."""
    file = File(path, kind)
    document = read_document(file)
    tables = dict(document.tables)
    rules, problems = _rules(tables.pop("rule"), kind, document.text) if "rule" in tables else ((), [])
    servers, wrong = _servers(tables, document.text)
    values = flatten(tables)
    if problems := [*_described(find_invalid_values(values), document.text), *problems, *wrong]:
        refuse(file, *problems)
    layer = Layer(
        kind=kind,
        source=f"{kind} file {quote_path(path)}",
        values=values,
        rules=rules,
        servers=servers,
        lines={**find_key_lines(document.text), **_server_lines(document.text)},
    )
    return layer, sha256(document.content).hexdigest()


def _rules(tables: object, kind: FileKind, text: str) -> "tuple[tuple[Rule, ...], list[str]]":
    from handrail.settings.rule_tables import parse_rules  # noqa: PLC0415 - only where there are rules

    return parse_rules(tables, kind, text)


def _servers(tables: dict[str, Any], text: str) -> "tuple[Mapping[str, ServerTable] | None, list[str]]":
    """Takes them out of the tables: they are no setting, but any number of things."""
    section: object = tables.get("mcp")
    if not isinstance(section, dict) or "servers" not in section:
        return None, []
    from handrail.settings.servers import parse_servers  # noqa: PLC0415 - only where there are servers

    rest: dict[str, Any] = dict(section)  # pyright: ignore[reportUnknownArgumentType]
    written: object = rest.pop("servers")
    tables["mcp"] = rest
    return parse_servers(written, find_lines_below(text, "mcp.servers"))


def _server_lines(text: str) -> dict[str, int]:
    return {f"mcp.servers.{name}": line for name, line in find_lines_below(text, "mcp.servers").items()}


def _described(wrong: Mapping[str, object], text: str) -> list[str]:
    if not wrong:
        return []
    from handrail.settings.problem import describe_refused  # noqa: PLC0415 - only for an error

    return describe_refused(wrong, text)
