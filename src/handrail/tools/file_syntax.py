"""Whether a file still parses after a change."""

from collections.abc import Callable

import msgspec

from handrail.code.data_syntax import find_front_matter_problem, find_json_problem, find_toml_problem, find_yaml_problem
from handrail.code.python_syntax import find_python_problem
from handrail.code.script_syntax import find_javascript_problem, find_tsx_problem, find_typescript_problem
from handrail.protocol.errors import ToolError
from handrail.workspace.errors import clip_path
from handrail.workspace.text import decode_text

_MEBIBYTE = 1 << 20
_DATA_KINDS = frozenset({"json", "yaml", "yml", "md", "mdx", "markdown"})
_COMMENTED_JSON = (
    *("tsconfig", "jsconfig", "devcontainer", ".eslintrc", "tslint", "babel.config", ".babelrc", ".swcrc"),
    *("api-extractor", "biome.json", "deno.json", "turbo.json", "wrangler.json", "rush.json"),
)
"""Starts of the names of JSON files that may have comments."""


def find_syntax_warning(path: str, before: bytes | None, after: bytes) -> str | None:
    """The warning about a file that parsed before, or is new, and does not parse now.

    `before` is None if there was no file or its bytes are not known. It is parsed only if `after` does not parse.
    """
    problem = find_syntax_problem(path, after)
    if problem is None:
        return None
    if before is None or not before.strip():
        return f"{clip_path(path)} was written, but {problem}."
    if find_syntax_problem(path, before):
        return None
    return f"{clip_path(path)} was changed and no longer parses: {problem}."


def refuse_broken_data(path: str, data: bytes) -> None:
    """Refuses JSON, YAML and Markdown front matter that does not parse."""
    if _find_kind(path) in _DATA_KINDS and (problem := find_syntax_problem(path, data)):
        message = f"{clip_path(path)} was not written: {problem}. The restricted profile keeps only data that parses."
        raise ToolError("INVALID_ARGUMENT", message, details={"warnings": [problem]}, warnings=(problem,))


def find_syntax_problem(path: str, data: bytes) -> str | None:
    """What is wrong with a file, with the line if the parser knows it. None if it parses or its kind is not known."""
    syntax = _SYNTAXES.get(_find_kind(path))
    if syntax is None or len(data) > syntax.max_bytes or _may_have_comments(path):
        return None
    text = decode_text(data)
    return "it is not text" if text is None else syntax.find_problem(text.text)


def _find_kind(path: str) -> str:
    return path.rpartition(".")[2].lower() if "." in path else ""


def _may_have_comments(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return name.startswith(_COMMENTED_JSON) or folder.endswith(".vscode")


class _Syntax(msgspec.Struct, frozen=True):
    find_problem: Callable[[str], str | None]
    max_bytes: int = _MEBIBYTE
    """Larger files are not parsed. Up to here it takes less than a second and a few hundred megabytes."""


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
