"""The pages of the reference, made from the parser, the settings model, the error codes, the public classes."""

import argparse
import ast
import inspect
import json
import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from http_pages import render_http_api
from msgspec import NODEFAULT

import handrail
from handrail.cli.parser import COMMANDS, list_groups, list_subcommands, load_command
from handrail.cli.usage import COMMON_EXITS, build_parser, render_overview
from handrail.dialects.dialect import DIALECTS, Dialect, load_dialect
from handrail.protocol.errors import CODES, MEANING, RETRYABLE
from handrail.runtime.registry import HELPED, build_tool_set
from handrail.settings import Settings
from handrail.settings.declaration import ALL_SOURCES, FILE_SOURCES, TRUSTED_SOURCES, USER_SOURCES, Field
from handrail.settings.mcp_servers import SERVER
from handrail.settings.model import DEFAULTS, list_settings
from handrail.settings.toml_file import RULE

_NOTE = "<!-- Generated: scripts/reference --write. Do not edit. -->"
_LOOSENED_BY = {
    ALL_SOURCES: "any layer",
    TRUSTED_SOURCES: "managed file, user file, trusted project, session, flag",
    USER_SOURCES: "managed file, user file, flag",
    FILE_SOURCES: "managed file, user file",
}
_VARIABLES = {
    "HANDRAIL_CONFIG": "absolute path of the user file, instead of `~/.config/handrail/config.toml`",
    "HANDRAIL_STATE_DIR": "state folder, instead of `~/.local/state/handrail`",
    "HANDRAIL_MODE": "mode; it can only be stricter than the settings",
    "HANDRAIL_MODEL": "model of `handrail run` and `handrail acp`",
    "HANDRAIL_TOKEN": "token of `handrail mcp --http`",
    "HANDRAIL_NOTIFY": "`off` disables notifications on the desktop and in the terminal",
    "CI": "if set, `handrail call` and `handrail run` deny requests",
    "NO_COLOR, FORCE_COLOR": "disable or enable colour",
}
_SHAPES = {
    "deepchat": "`{content, rawData: {toolResult}}`",
    "devminds": "`{ok, result?, warnings?}`",
    "clude": "`{tool_call_id, ok, payload, error, artifacts, duration_ms}`",
    "agentica": "a text",
    "onething": "`{success, data: {title, output, metadata, attachments}}`",
    "claude-code": "`{type: tool_result, tool_use_id, content, is_error?, tool_use_result}`",
    "codex": "a text; commands `{wall_time_seconds, output, exit_code?, session_id?}`",
    "opencode": "`{title, output, metadata, attachments?}`, or the state `error`",
}
"""The form of a dialect's answers."""
_CLASSES = ("Handrail", "AsyncHandrail", "Agent")
"""The classes whose methods the page lists. The methods of the second are those of the first."""


def main(root: Path, description: str) -> int:
    """Runs the command; the exit code."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--write", action="store_true", help="write the pages")
    choice.add_argument("--check", action="store_true", help="exit 1 when one is out of date")
    write: bool = parser.parse_args().write
    stale = {path: text for path, text in generated().items() if _read(root / path) != text}
    for path, text in stale.items():
        if write:
            (root / path).write_text(text, encoding="utf-8")
        print(f"wrote {path}" if write else f"{path} is out of date; scripts/reference --write brings it up to date.")
    return 1 if stale and not write else 0


def generated() -> dict[str, str]:
    """The text of each page by its path."""
    pages = {
        "command-line": _command_line(),
        "settings": _settings(),
        "codes": _codes(),
        "python-api": _python_api(),
        "dialects": _dialects(),
        "http-api": render_http_api(_NOTE),
    }
    return {f"docs/reference/{name}.md": "\n\n".join(blocks) + "\n" for name, blocks in pages.items()}


def _command_line() -> Iterator[str]:
    os.environ["COLUMNS"] = "80"
    yield from ("# Command line", _NOTE)
    yield "`handrail help COMMAND` prints the same text. [Exit codes](codes.md#exit-codes) has all exit codes at once."
    yield _block(render_overview())
    for title, words in list_groups().items():
        yield f"## {title}"
        for word in words:
            for name in (*([word] if word in COMMANDS else []), *list_subcommands(word)):
                parser = build_parser(name, load_command(name))
                yield from (f"### handrail {name}", _block(parser.format_help()))


def _dialects() -> Iterator[str]:
    """The tables of the dialects: each tool with its parameters and the canonical tools behind it."""
    yield from ("# Dialects", _NOTE)
    yield (
        "[Use a dialect](../how-to/use-a-dialect.md) shows how to choose one. Bold parameters are required. A tool\n"
        "whose canonical tool does not exist in this version answers `UNAVAILABLE`."
    )
    yield "\n".join(
        (
            "| dialect | follows | answer |",
            "|---|---|---|",
            *(f"| `{name}` | {load_dialect(name).follows} | {_SHAPES[name]} |" for name in DIALECTS),
        )
    )
    existing = build_tool_set(Settings(), tuple(HELPED)).registered
    for name in DIALECTS:
        yield f"## {name}"
        yield "\n".join(
            ("| tool | parameters | canonical |", "|---|---|---|", *_dialect_rows(load_dialect(name), existing))
        )


def _dialect_rows(dialect: Dialect, existing: tuple[str, ...]) -> Iterator[str]:
    for tool in dialect.tools:
        params = ", ".join(
            f"**`{name}`**" if param.default is NODEFAULT else f"`{name}`"
            for name, param in (tool.params or {}).items()
        )
        if tool.params is None and not tool.lacks:
            params = "as the canonical tool"
        missing = [name for name in tool.to if name not in existing]
        behind = ", ".join(f"`{name}`" for name in tool.to)
        note = tool.lacks or ("not built yet" if missing else "")
        row = f"| `{tool.name}` | {params or '–'} | {': '.join(filter(None, (behind, note)))} |"
        yield row


def _settings() -> Iterator[str]:
    yield from ("# Settings", _NOTE)
    yield (
        "The user file is `~/.config/handrail/config.toml`. A project has `handrail.toml`, a machine\n"
        "`/etc/handrail/managed.toml`. [Layers and trust](../how-to/write-a-rule.md#layers-and-trust) has the order.\n"
        "Every layer can make a setting stricter. The last column names the layers that can make it looser.\n"
        "`handrail config KEY` explains a setting, and `handrail config --schema` prints the JSON Schema of a file."
    )
    sections: dict[str, dict[str, Field]] = {}
    for key, field in list_settings().items():
        section = key.rpartition(".")[0]
        sections.setdefault(section, {})[key] = field
    for section, fields in sections.items():
        yield f"## {f'[{section}]' if section else 'Top level'}"
        rows = (
            (f"`{key}`", one.help, _value(DEFAULTS[key]), one.allowed, _loosened(one)) for key, one in fields.items()
        )
        yield _table(("setting", "meaning", "default", "allowed", "made looser by"), rows)
    yield from ("## [[rule]]", _keys(RULE), "## [mcp.servers.NAME]", _keys(SERVER))
    yield from ("## Environment variables", _table(("variable", "meaning"), _quoted(_VARIABLES)))


def _keys(fields: Mapping[str, Field]) -> str:
    return _table(("key", "meaning", "allowed"), ((f"`{key}`", one.help, one.allowed) for key, one in fields.items()))


def _loosened(field: Field) -> str:
    text = _LOOSENED_BY[field.loosened_by]
    return f"{text}; {_value(*field.reserved)} only by the user" if field.reserved else text


def _codes() -> Iterator[str]:
    yield from ("# Error and exit codes", _NOTE, "## Error codes")
    yield "A failed call has one of these codes in `error.code`. A retryable call may succeed later."
    rows = ((f"`{code}`", MEANING[code], "yes" if code in RETRYABLE else "") for code in CODES)
    yield _table(("code", "meaning", "retryable"), rows)
    yield "## Exit codes"
    yield _table(("exit", "every command"), ((str(code), text) for code, text in sorted(COMMON_EXITS.items())))
    yield "These commands have further codes, or another meaning of a code:"
    commands: dict[tuple[int, str], list[str]] = {}
    for name in COMMANDS:
        for code, text in load_command(name).exits.items():
            commands.setdefault((code, text), []).append(f"`{name}`")
    rows = ((str(code), text, ", ".join(names)) for (code, text), names in sorted(commands.items()))
    yield _table(("exit", "meaning", "commands"), rows)


def _python_api() -> Iterator[str]:
    yield from ("# Python API", _NOTE)
    yield (
        "Everything here is imported from `handrail`. [Use handrail from Python](../how-to/use-from-python.md) has\n"
        "examples, [the protocol](protocol.md) has the fields of calls, results, requests and events."
    )
    names = [name for name in handrail.__all__ if not name.startswith("_")]
    yield _table(("name", "meaning"), ((f"`{name}`", _sentence(getattr(handrail, name))) for name in names))
    for name in _CLASSES:
        kind = getattr(handrail, name)
        yield from (f"## {name}", _paragraph(kind))
        yield _block(textwrap.fill(f"{name}({_parameters(kind.__init__)})", 80, subsequent_indent="    "))
        if name == "AsyncHandrail":
            own = [one for one in _public(kind) if one not in _public(handrail.Handrail)]
            yield f"Methods beside those of `Handrail`: {', '.join(f'`{one}`' for one in own)}." if own else ""
            continue
        yield _table(("method", "effect"), (_method(kind, one) for one in _public(kind)))


def _public(kind: type) -> list[str]:
    return sorted(name for name, _ in inspect.getmembers(kind) if not name.startswith("_"))


def _method(kind: type, name: str) -> tuple[str, str]:
    member = inspect.getattr_static(kind, name)
    if isinstance(member, property):
        return f"`{name}`", _sentence(member)
    return f"`{name}({_parameters(getattr(kind, name))})`", _sentence(member)


def _parameters(function: Any) -> str:
    """The parameters as the source has them, without their types."""
    if function is object.__init__:
        return ""
    source = textwrap.dedent(inspect.getsource(function))
    [node] = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)][:1]
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    for one in every:
        if one is not None:
            one.annotation = None
    return re.sub(r"^(?:self|cls)(?:, )?", "", ast.unparse(node.args))


def _paragraph(thing: Any) -> str:
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def _sentence(thing: Any) -> str:
    """The first sentence of a docstring."""
    return re.split(r"(?<=[.:]) (?=[A-Z`])", _paragraph(thing))[0].rstrip(":")


def _value(*values: object) -> str:
    texts = ("–" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`" for value in values)
    return ", ".join("none" if text == "`[]`" else text for text in texts)


def _quoted(rows: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for names, text in rows.items():
        yield ", ".join(f"`{name}`" for name in names.split(", ")), text


def _block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
