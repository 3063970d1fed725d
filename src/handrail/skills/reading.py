"""Makes a skill of a SKILL.md, whatever is in it."""

import re
from typing import Any

from msgspec.structs import replace

from handrail.protocol.errors import ToolError
from handrail.protocol.text import truncate
from handrail.skills.allowed import AllowedToolsError, parse_allowed_tools
from handrail.skills.front_matter import FrontMatterError, parse_front_matter, split_front_matter
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
_TAKEN = frozenset({"name", "description", "allowed-tools", "version", "license", "compatibility", "metadata"})
_BY_NAME_ONLY = "disable-model-invocation"


def read_skill(workspace: Workspace, path: str, found: Skill) -> Skill:
    """The skill whose SKILL.md is in a folder of a workspace; `found` says what is known of it without."""
    try:
        text = _text(workspace.read_small_file(f"{path}/{FILE}", MAX_SKILL_BYTES))
        front, body = split_front_matter(text)
        return _understood(found, parse_front_matter(front), body)
    except ToolError as error:
        return replace(found, problem=_why(error))
    except (FrontMatterError, AllowedToolsError) as error:
        return replace(found, problem=str(error))


def _why(error: ToolError) -> str:
    """Without what the file may have been: a link that leads outside is told as that, not where it leads."""
    reasons = {
        "OUTSIDE_WORKSPACE": f"its {FILE} leads outside of where it was found",
        "POLICY_DENIED": f"its {FILE} leads to a credential",
        "NOT_FOUND": f"its {FILE} is gone",
        "LIMIT_EXCEEDED": f"its {FILE} has more than {MAX_SKILL_BYTES // 1024} KB",
    }
    return reasons.get(error.code, f"its {FILE} is no file that can be read")


def _text(data: bytes) -> str:
    text = decode_text(data)
    if text is None:
        raise FrontMatterError(f"its {FILE} is not text")
    return text.text.removeprefix("\ufeff")


def _understood(found: Skill, given: dict[str, Any], body: str) -> Skill:
    warnings: list[str] = []
    name = _name(found, given.get("name"), warnings)
    description = _description(given.get("description"), body, warnings)
    tools = parse_allowed_tools(given.get("allowed-tools"))
    others = sorted(str(key)[:40] for key in given if key not in _TAKEN and key != _BY_NAME_ONLY)
    if others:
        warnings.append(f"the front matter has {', '.join(others[:10])}, which means nothing here")
    return replace(
        found,
        name=name,
        description=description,
        tools=None if tools is None else tools.tools,
        patterns={} if tools is None else tools.patterns,
        warnings=(*warnings, *(() if tools is None else tools.warnings)),
        by_name_only=str(given.get(_BY_NAME_ONLY, "")).strip().lower() in {"true", "yes", "on"},
        version=_value(given, "version"),
        license=_value(given, "license"),
        compatibility=_value(given, "compatibility"),
        metadata=_metadata(given.get("metadata"), warnings),
        body=body,
    )


def _name(found: Skill, given: Any, warnings: list[str]) -> str:
    """Its own name where that is one, else that of its folder."""
    if given is None or given == "":
        return _checked(found.name)
    if not isinstance(given, str) or not _is_name(given):
        folder = _checked(found.name)
        warnings.append(f"the name {str(given)[:80]!r} is none (a-z, 0-9 and single -); its folder's is used")
        return folder
    if given != found.name:
        warnings.append(f"its folder is called {found.name[:80]!r}")
    return given


def _checked(folder: str) -> str:
    if not _is_name(folder):
        raise FrontMatterError(f"neither it nor its folder has a name of a-z, 0-9 and single -: {folder[:80]!r}")
    return folder


def _is_name(text: str) -> bool:
    return len(text) <= _MAX_NAME_CHARS and _NAME.fullmatch(text) is not None


def _description(given: Any, body: str, warnings: list[str]) -> str:
    if isinstance(given, str) and given.strip():
        text = given
    else:
        text = next((line for line in body.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
        if not text:
            raise FrontMatterError("it has no description, so that nobody could tell when to use it")
        warnings.append("it has no description; the first line of its text is taken for one")
    text = " ".join(text.split())
    if len(text) > _MAX_DESCRIPTION_CHARS:
        warnings.append(f"its description was cut at {_MAX_DESCRIPTION_CHARS} characters")
    return truncate(text, _MAX_DESCRIPTION_CHARS)


def _value(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    return " ".join(value.split())[:_MAX_VALUE_CHARS] if isinstance(value, str) else ""


def _metadata(given: Any, warnings: list[str]) -> dict[str, str]:
    if given is None or given == "":
        return {}
    if not isinstance(given, dict):
        warnings.append("metadata is no table of names and values")
        return {}
    pairs: list[tuple[Any, Any]] = list(given.items())[:_MAX_METADATA_ENTRIES]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return {str(key)[:_MAX_VALUE_CHARS]: value[:_MAX_VALUE_CHARS] for key, value in pairs if isinstance(value, str)}
