"""The front matter of a SKILL.md: YAML between two lines of dashes, read as texts, lists and tables of texts only."""

from typing import Any

_MAX_FRONT_MATTER_CHARS = 8_192
_MAX_LEVELS = 50
_LINE = "---"


class FrontMatterError(ValueError):
    """Why a front matter cannot be used, in words."""


def split_front_matter(text: str) -> tuple[str, str]:
    """The front matter and what comes behind it."""
    lines = text.split("\n")
    if lines[0].rstrip() != _LINE:
        raise FrontMatterError("it does not begin with a front matter (a line of ---)")
    end = next((at for at, line in enumerate(lines[1:], start=1) if line.rstrip() == _LINE), None)
    if end is None:
        raise FrontMatterError("its front matter does not end (a second line of ---)")
    return "\n".join(lines[1:end]), "\n".join(lines[end + 1 :]).strip("\n")


def parse_front_matter(text: str) -> dict[str, Any]:
    """The fields of a front matter."""
    if len(text) > _MAX_FRONT_MATTER_CHARS:
        raise FrontMatterError(f"its front matter has more than {_MAX_FRONT_MATTER_CHARS} characters")
    found = _loaded(text)
    if not isinstance(found, dict):
        raise FrontMatterError("its front matter is no table of names and values")
    return found  # pyright: ignore[reportUnknownVariableType]  keys and values are texts


def _loaded(text: str) -> Any:
    import yaml  # noqa: PLC0415  only where there are skills

    # It makes texts, lists and tables, and nothing else; in C, where that was built, ten times as fast.
    loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MAX_LEVELS:
                raise FrontMatterError("its front matter is nested too deeply")
            if isinstance(event, yaml.AliasEvent):  # few of them can stand for more than any memory holds
                raise FrontMatterError("its front matter uses references (*name), which are not read")
        return yaml.load(text, Loader=loader)  # noqa: S506  as said
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 2}" if mark else ""
        problem = getattr(error, "problem", None) or type(error).__name__
        raise FrontMatterError(f"its front matter is not valid YAML: {problem}{where}") from None
    except (RecursionError, UnicodeEncodeError):  # of one that is written in Python; text that is none
        raise FrontMatterError("its front matter is nested too deeply, or is not text") from None
