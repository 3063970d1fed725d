"""Whether a file that was changed still parses, for the kinds of files that handrail knows."""

from collections.abc import Callable

import msgspec

from handrail.code.data_syntax import find_front_matter_problem, find_json_problem, find_toml_problem, find_yaml_problem
from handrail.code.python_syntax import find_python_problem
from handrail.code.script_syntax import find_javascript_problem, find_tsx_problem, find_typescript_problem
from handrail.protocol.errors import ToolError
from handrail.tools.contract import CallLimits
from handrail.workspace.errors import clip_path
from handrail.workspace.text import decode_text

_MEBIBYTE = 1 << 20


def find_parse_warning(path: str, before: bytes | None, after: bytes) -> str | None:
    """What to tell about a file that does not parse, and did before, or is new; None otherwise.

    `before` is None where there was no file, or nothing is known of it. It is looked at only when `after` does not
    parse, so that a change that breaks nothing costs one look.
    """
    problem = find_parse_problem(path, after)
    if problem is None:
        return None
    if before is None or not before.strip():
        return f"{clip_path(path)} was written, but {problem}."
    return (
        None if find_parse_problem(path, before) else f"{clip_path(path)} was changed and no longer parses: {problem}."
    )


def check_parses(limits: CallLimits, path: str, data: bytes) -> None:
    """Where data has to parse, what does not is not written: JSON, YAML, and the front matter of Markdown."""
    if not limits.restricted or _kind(path) not in _DATA:
        return
    if problem := find_parse_problem(path, data):
        message = f"{clip_path(path)} was not written: {problem}. The restricted profile keeps only data that parses."
        raise ToolError("INVALID_ARGUMENT", message, details={"warnings": [problem]}, warnings=(problem,))


def find_parse_problem(path: str, data: bytes) -> str | None:
    """What is wrong with a file, with the line where the parser knows it; None when it parses, or is not looked at."""
    syntax = _SYNTAXES.get(_kind(path))
    if syntax is None or len(data) > syntax.largest or _has_comments(path):
        return None
    text = decode_text(data)
    return "it is not text" if text is None else syntax.problem(text.text)


class _Syntax(msgspec.Struct, frozen=True):
    problem: Callable[[str], str | None]
    largest: int = _MEBIBYTE
    """Bytes that are looked at: up to here it takes less than a second, or a few hundred megabytes for a moment."""


def _kind(path: str) -> str:
    return path.rpartition(".")[2].lower() if "." in path else ""


def _has_comments(path: str) -> bool:
    """Whether the file is one of those that are called JSON and may have comments."""
    folder, _, name = path.rpartition("/")
    return name.startswith(_COMMENTED) or folder.endswith(".vscode")


_DATA = frozenset({"json", "yaml", "yml", "md", "mdx", "markdown"})
_COMMENTED = (
    *("tsconfig", "jsconfig", "devcontainer", ".eslintrc", "tslint", "babel.config", ".babelrc", ".swcrc"),
    *("api-extractor", "biome.json", "deno.json", "turbo.json", "wrangler.json", "rush.json"),
)
"""How their names begin."""


_SYNTAXES: dict[str, _Syntax] = {
    "json": _Syntax(find_json_problem, 8 * _MEBIBYTE),
    **dict.fromkeys(("yaml", "yml"), _Syntax(find_yaml_problem)),
    "toml": _Syntax(find_toml_problem),
    **dict.fromkeys(("md", "mdx", "markdown"), _Syntax(find_front_matter_problem)),
    **dict.fromkeys(("py", "pyi", "pyw"), _Syntax(find_python_problem, _MEBIBYTE // 2)),
    **dict.fromkeys(("js", "jsx", "mjs", "cjs"), _Syntax(find_javascript_problem, _MEBIBYTE // 2)),
    **dict.fromkeys(("ts", "mts", "cts"), _Syntax(find_typescript_problem, _MEBIBYTE // 2)),
    "tsx": _Syntax(find_tsx_problem, _MEBIBYTE // 2),
}
