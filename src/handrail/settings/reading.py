"""Reads one settings file as a layer: all its keys known, all its values allowed."""

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from handrail.settings.check import flatten, refused
from handrail.settings.document import File, FileKind, read_document, refuse
from handrail.settings.errors import shown_path
from handrail.settings.layers import Layer
from handrail.settings.lines import key_lines

if TYPE_CHECKING:
    from handrail.policy.rules.rule import Rule


def read_layer(path: str, kind: FileKind) -> tuple[Layer, str]:
    """The layer and the SHA-256 of the file; a SettingsError with all that is wrong with it."""
    file = File(path, kind)
    document = read_document(file)
    tables = dict(document.tables)
    rules, problems = _rules(tables.pop("rule"), kind, document.text) if "rule" in tables else ((), [])
    values = flatten(tables)
    if problems := [*_described(refused(values), document.text), *problems]:
        refuse(file, *problems)
    layer = Layer(
        kind=kind,
        source=f"{kind} file {shown_path(path)}",
        values=values,
        rules=rules,
        lines=key_lines(document.text),
    )
    return layer, sha256(document.content).hexdigest()


def _rules(tables: object, kind: FileKind, text: str) -> "tuple[tuple[Rule, ...], list[str]]":
    from handrail.settings.rule_tables import read_rules  # noqa: PLC0415 - only where there are rules

    return read_rules(tables, kind, text)


def _described(wrong: Mapping[str, object], text: str) -> list[str]:
    if not wrong:
        return []
    from handrail.settings.problem import describe  # noqa: PLC0415 - only for an error

    return describe(wrong, text)
