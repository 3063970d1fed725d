"""Reads a skill from its SKILL.md."""

import re
from typing import Any

from msgspec.structs import replace

from handrail.protocol.errors import ToolError
from handrail.protocol.text import truncate
from handrail.skills.allowed_tools import AllowedToolsError, parse_allowed_tools
from handrail.skills.skill import Skill
from handrail.workspace.text import decode_text
from handrail.workspace.workspace import Workspace

FILE = "SKILL.md"
MAX_SKILL_BYTES = 256 * 1024
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_NAME_CHARS = 64
_MAX_DESCRIPTION_CHARS = 1_024
_MAX_VALUE_CHARS = 500
_MAX_METADATA_ENTRIES = 50
_BY_NAME_ONLY = "disable-model-invocation"
_FIELDS = frozenset(
    {"name", "description", "allowed-tools", "version", "license", "compatibility", "metadata", _BY_NAME_ONLY}
)
_PROBLEMS = {
    "OUTSIDE_WORKSPACE": f"its {FILE} leads outside of where it was found",
    "POLICY_DENIED": f"its {FILE} leads to a credential",
    "NOT_FOUND": f"its {FILE} is gone",
    "LIMIT_EXCEEDED": f"its {FILE} has more than {MAX_SKILL_BYTES // 1024} KB",
}
"""By error code. They do not reveal the target of a link."""
_MAX_FRONT_MATTER_CHARS = 8_192
_MAX_LEVELS = 50
_DASHES = "---"


class FrontMatterError(ValueError):
    """Why a front matter cannot be used."""


def read_skill(workspace: Workspace, path: str, found: Skill) -> Skill:
    """Complete a skill with the SKILL.md in a folder of a workspace."""
    try:
        text = decode_text(workspace.read_small_file(f"{path}/{FILE}", MAX_SKILL_BYTES))
        if text is None:
            return replace(found, problem=f"its {FILE} is not text")
        front, body = split_front_matter(text.text.removeprefix("\ufeff"))
        return _build_skill(found, parse_front_matter(front), body)
    except ToolError as error:
        return replace(found, problem=_PROBLEMS.get(error.code, f"its {FILE} is not a readable file"))
    except (FrontMatterError, AllowedToolsError) as error:
        return replace(found, problem=str(error))


def split_front_matter(text: str) -> tuple[str, str]:
    """The front matter, between two lines of dashes, and the rest."""
    lines = text.split("\n")
    if lines[0].rstrip() != _DASHES:
        raise FrontMatterError("it does not begin with a front matter (a line of ---)")
    end = next((at for at, line in enumerate(lines[1:], start=1) if line.rstrip() == _DASHES), None)
    if end is None:
        raise FrontMatterError("its front matter does not end (a second line of ---)")
    return "\n".join(lines[1:end]), "\n".join(lines[end + 1 :]).strip("\n")


def parse_front_matter(text: str) -> dict[str, Any]:
    """The fields: texts, and lists and tables of texts."""
    if len(text) > _MAX_FRONT_MATTER_CHARS:
        raise FrontMatterError(f"its front matter has more than {_MAX_FRONT_MATTER_CHARS} characters")
    fields = _load_yaml(text)
    if not isinstance(fields, dict):
        raise FrontMatterError("its front matter is not a table of names and values")
    return fields  # pyright: ignore[reportUnknownVariableType]  keys and values are texts


def _load_yaml(text: str) -> Any:
    import yaml  # noqa: PLC0415  only if there are skills

    # It makes only texts, lists and tables. The C version is ten times as fast.
    loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MAX_LEVELS:
                raise FrontMatterError("its front matter is nested too deeply")
            if isinstance(event, yaml.AliasEvent):  # a few of them can expand beyond any memory
                raise FrontMatterError("its front matter uses references (*name), which are not supported")
        return yaml.load(text, Loader=loader)  # noqa: S506  a base loader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 2}" if mark else ""
        problem = getattr(error, "problem", None) or type(error).__name__
        raise FrontMatterError(f"its front matter is not valid YAML: {problem}{where}") from None
    except (RecursionError, UnicodeEncodeError):  # of the Python version
        raise FrontMatterError("its front matter is nested too deeply, or is not text") from None


def _build_skill(found: Skill, fields: dict[str, Any], body: str) -> Skill:
    warnings: list[str] = []
    name = _choose_name(found.name, fields.get("name"), warnings)
    description = _choose_description(fields.get("description"), body, warnings)
    tools = parse_allowed_tools(fields.get("allowed-tools"))
    unknown = sorted(str(key)[:40] for key in fields if key not in _FIELDS)
    if unknown:
        warnings.append(f"the front matter has {', '.join(unknown[:10])}, which has no effect")
    return replace(
        found,
        name=name,
        description=description,
        tools=None if tools is None else tools.tools,
        patterns={} if tools is None else tools.patterns,
        warnings=(*warnings, *(() if tools is None else tools.warnings)),
        by_name_only=str(fields.get(_BY_NAME_ONLY, "")).strip().lower() in {"true", "yes", "on"},
        version=_get_text(fields, "version"),
        license=_get_text(fields, "license"),
        compatibility=_get_text(fields, "compatibility"),
        metadata=_read_metadata(fields.get("metadata"), warnings),
        body=body,
    )


def _choose_name(folder: str, given: Any, warnings: list[str]) -> str:
    """The given name if it is valid, else that of the folder."""
    if isinstance(given, str) and _is_name(given):
        if given != folder:
            warnings.append(f"its folder is called {folder[:80]!r}")
        return given
    if not _is_name(folder):
        raise FrontMatterError(f"neither it nor its folder has a name of a-z, 0-9 and single -: {folder[:80]!r}")
    if given is not None and given != "":
        warnings.append(
            f"the name {str(given)[:80]!r} is invalid (a-z, 0-9 and single -); the name of its folder is used"
        )
    return folder


def _is_name(text: str) -> bool:
    return len(text) <= _MAX_NAME_CHARS and _NAME.fullmatch(text) is not None


def _choose_description(given: Any, body: str, warnings: list[str]) -> str:
    if isinstance(given, str) and given.strip():
        text = given
    else:
        text = next((line for line in body.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
        if not text:
            raise FrontMatterError("it has no description")
        warnings.append("it has no description; the first line of its text is used")
    text = " ".join(text.split())
    if len(text) > _MAX_DESCRIPTION_CHARS:
        warnings.append(f"its description was cut at {_MAX_DESCRIPTION_CHARS} characters")
    return truncate(text, _MAX_DESCRIPTION_CHARS)


def _get_text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    return " ".join(value.split())[:_MAX_VALUE_CHARS] if isinstance(value, str) else ""


def _read_metadata(given: Any, warnings: list[str]) -> dict[str, str]:
    if given is None or given == "":
        return {}
    if not isinstance(given, dict):
        warnings.append("metadata is not a table of names and values")
        return {}
    pairs: list[tuple[Any, Any]] = list(given.items())[:_MAX_METADATA_ENTRIES]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return {str(key)[:_MAX_VALUE_CHARS]: value[:_MAX_VALUE_CHARS] for key, value in pairs if isinstance(value, str)}
