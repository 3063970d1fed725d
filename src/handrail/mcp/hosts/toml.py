"""Settings in TOML, changed in place with tomlkit."""

import re
import tomllib
from collections.abc import Iterator
from functools import reduce
from typing import Any, cast

from handrail.mcp.hosts.merge import CannotMerge, ConfigSyntaxError, ServerEntry, is_same_json, merge_value
from handrail.protocol.errors import build_install_command
from handrail.protocol.wire import encode

# tomllib takes minutes for one key of 100,000 parts. No setting has more than a few.
_DEEP_KEY = re.compile(r"""(?<![\w"'-])(?:[\w"'-]+[ \t]*\.[ \t]*){32}""")

TablePath = tuple[str, ...]


def merge_toml(text: str, wanted: dict[str, Any]) -> str:
    """The text with the wanted settings. Comments, layout and other keys stay."""
    intended = merge_value(parse_toml(text), wanted)
    for table, values in _list_tables(wanted):
        text = _merge_table(text, table, values)
    if not is_same_json(parse_toml(text), intended):
        raise CannotMerge("it cannot be changed without changing other parts of it")
    return text


def parse_toml(text: str) -> dict[str, Any]:
    """Raises ConfigSyntaxError."""
    if _DEEP_KEY.search(text):
        raise ConfigSyntaxError("a name of more than 32 parts")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigSyntaxError(f"not TOML: {str(error)[:200]}") from None


def _list_tables(wanted: Any, path: TablePath = ()) -> Iterator[tuple[TablePath, dict[str, Any]]]:
    """The tables that have values, each with its values."""
    values: dict[str, Any] = wanted.entry if isinstance(wanted, ServerEntry) else wanted
    own = {key: value for key, value in values.items() if not isinstance(value, dict | ServerEntry)}
    if own:
        yield path, own
    for key, value in values.items():
        if key not in own:
            yield from _list_tables(value, (*path, key))


def _merge_table(text: str, table: TablePath, values: dict[str, Any]) -> str:
    """There are many ways to write a table. A candidate counts if it means exactly what is intended."""
    before = parse_toml(text)
    intended = merge_value(before, reduce(lambda inner, key: {key: inner}, reversed(table), values))
    if is_same_json(before, intended):
        return text
    there = reduce(lambda inner, key: inner[key], table, intended)
    for candidate in _list_candidates(text, table, {key: there[key] for key in values}):
        try:
            if is_same_json(tomllib.loads(candidate), intended):
                return candidate
        except (ValueError, RecursionError):
            continue
    name = ".".join((*table, *values)) if len(values) == 1 else ".".join(table)
    raise CannotMerge(f"its {name} has a form that cannot be changed in place")


def _list_candidates(text: str, table: TablePath, values: dict[str, Any]) -> Iterator[str]:
    edited, added = _edit_table(text, table, values) if text.strip() else (text, values)
    if not added:
        yield edited
        return
    newline = "\r\n" if "\r\n" in text else "\n"
    if table:
        gap = "" if not edited or edited.endswith("\n\n") else newline if edited.endswith("\n") else newline * 2
        yield f"{edited}{gap}[{'.'.join(table)}]{newline}{_render_lines(added, newline)}"
    at = _find_root_end(edited)
    gap = "" if not at or edited[at - 1] == "\n" else newline
    end = newline if edited[:at].strip() == "" and edited[at:] else ""
    lines = _render_lines({".".join((*table, key)): value for key, value in added.items()}, newline)
    yield f"{edited[:at]}{gap}{lines}{end}{edited[at:]}"


def _render_lines(values: dict[str, Any], newline: str) -> str:
    return "".join(f"{key} = {_render_value(value)}{newline}" for key, value in values.items())


def _render_value(value: Any) -> str:
    if not isinstance(value, list):
        return encode(value).decode()
    return f"[{', '.join(map(_render_value, cast('list[Any]', value)))}]"


def _edit_table(text: str, table: TablePath, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The text with the values whose table it has, and the other values."""
    try:
        from tomlkit import parse  # noqa: PLC0415  optional
        from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415
    except ImportError:
        how = build_install_command("mcp")
        raise CannotMerge(f"changing TOML needs tomlkit, which is not installed ({how})") from None
    try:
        document: Any = parse(text)
        left = _edit_document(document, table, values)
        return document.as_string(), left
    except TOMLKitError:
        return text, values


def _edit_document(document: Any, table: TablePath, values: dict[str, Any]) -> dict[str, Any]:
    """Sets the keys of a table, and adds the others if the table has a header. Returns the values that are left."""
    from tomlkit import item, nl  # noqa: PLC0415  optional
    from tomlkit.items import InlineTable, Table, Whitespace  # noqa: PLC0415

    node: Any = document
    for key in table:
        node = node.get(key, 0) if hasattr(node, "get") else 0
    if not hasattr(node, "get") or isinstance(node, InlineTable):
        return values
    for key, value in values.items():
        if key in node and not is_same_json(node[key], value):
            node[key] = item(value)
    left = {key: value for key, value in values.items() if key not in node}
    if not isinstance(node, Table) or node.display_name is None:
        return left
    blank_lines = 0
    while node.value.body and isinstance(node.value.body[-1][1], Whitespace):
        node.value.body.pop()
        blank_lines += 1
    for key, value in left.items():
        node.add(key, value)
    for _ in range(blank_lines):
        node.add(nl())
    return {}


def _find_root_end(text: str) -> int:
    """The end of the last line with a key outside of tables. Without one: before the paragraph of the first table."""
    keys = [key for key, value in tomllib.loads(text).items() if not isinstance(value, dict | list)]
    at = paragraph = 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        if not keys and line.lstrip().startswith("["):
            return paragraph
        paragraph = at if not line.strip() else paragraph
        try:
            if keys and keys[-1] in tomllib.loads(text[:at]):
                return at
        except ValueError:
            continue
    return len(text)
