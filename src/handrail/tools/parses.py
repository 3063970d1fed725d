"""Whether a file that should parse does: JSON, YAML, TOML and the front matter of Markdown."""

from collections.abc import Callable

_BRACKETS = 20_000
_DOTS = 2_000


def parse_problem(path: str, text: str) -> str | None:
    """What is wrong with the text, with the line where the parser knows it; None when it parses or need not."""
    parser = _PARSERS.get(_kind(path))
    return parser(text) if parser else None


def should_parse(path: str) -> bool:
    """Whether `parse_problem` would look at the text."""
    return _kind(path) in _PARSERS


def _kind(path: str) -> str:
    return path.rpartition(".")[2].lower() if "." in path else ""


def _takes_long(text: str) -> bool:
    """Nesting and dotted keys that no person writes, and on which parsers take the square of the time."""
    return text.count("[") + text.count("{") > _BRACKETS or any(line.count(".") > _DOTS for line in text.split("\n"))


def _json(text: str) -> str | None:
    import json  # noqa: PLC0415  only for files of this kind

    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"it is not valid JSON: {error}"
    return None


def _toml(text: str) -> str | None:
    if _takes_long(text):
        return None
    import tomllib  # noqa: PLC0415  only for files of this kind

    try:
        tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        return f"it is not valid TOML: {error}"
    return None


def _yaml(text: str) -> str | None:
    if _takes_long(text):
        return None
    import yaml  # noqa: PLC0415  only for files of this kind

    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where it was built
        list(yaml.parse(text, Loader=loader))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        return f"it is not valid YAML: {getattr(error, 'problem', None) or type(error).__name__}{where}"
    return None


def _front_matter(text: str) -> str | None:
    if not text.startswith("---"):
        return None
    first, *lines = text.splitlines()
    if first.rstrip() != "---":
        return None  # a rule across the page
    end = next((number for number, line in enumerate(lines) if line.rstrip() in {"---", "..."}), None)
    if end is None:
        return "its front matter has no closing ---"
    problem = _yaml("\n".join(lines[:end]))
    return problem and problem.replace("it is", "its front matter is", 1)


_PARSERS: dict[str, Callable[[str], str | None]] = {
    "json": _json,
    "yaml": _yaml,
    "yml": _yaml,
    "toml": _toml,
    "md": _front_matter,
    "mdx": _front_matter,
    "markdown": _front_matter,
}
