"""The front matter of a SKILL.md: YAML between two lines of dashes, read as texts, lists and tables of texts only."""

from typing import Any

_MOST_CHARACTERS = 32_768
_LINE = "---"


class FrontMatterError(ValueError):
    """Why a front matter cannot be used, in words."""


def split(text: str) -> tuple[str, str]:
    """The front matter and what comes behind it."""
    lines = text.split("\n")
    if lines[0].rstrip() != _LINE:
        raise FrontMatterError("it does not begin with a front matter (a line of ---)")
    end = next((at for at, line in enumerate(lines[1:], start=1) if line.rstrip() == _LINE), None)
    if end is None:
        raise FrontMatterError("its front matter does not end (a second line of ---)")
    return "\n".join(lines[1:end]), "\n".join(lines[end + 1 :]).strip("\n")


def fields(text: str) -> dict[str, Any]:
    """The fields of a front matter."""
    if len(text) > _MOST_CHARACTERS:
        raise FrontMatterError(f"its front matter has more than {_MOST_CHARACTERS} characters")
    found = _loaded(text)
    if not isinstance(found, dict):
        raise FrontMatterError("its front matter is no table of names and values")
    return found  # pyright: ignore[reportUnknownVariableType]  keys and values are texts


def _loaded(text: str) -> Any:
    import yaml  # noqa: PLC0415  only where there are skills

    class Plain(yaml.BaseLoader):
        """Makes texts, lists and tables of what it reads, and nothing else: no dates, no objects. It refuses
        references: few of them can stand for more than any memory holds."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):  # pyright: ignore[reportUnknownMemberType]
                raise FrontMatterError("its front matter uses references (*name), which are not read")
            return super().compose_node(parent, index)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    try:
        return yaml.load(text, Loader=Plain)  # noqa: S506  it makes plain values only
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 2}" if mark else ""
        problem = getattr(error, "problem", None) or type(error).__name__
        raise FrontMatterError(f"its front matter is not valid YAML: {problem}{where}") from None
    except (RecursionError, ValueError, TypeError) as error:
        if isinstance(error, FrontMatterError):
            raise
        raise FrontMatterError("its front matter is nested too deeply, or has a key that is no text") from None
