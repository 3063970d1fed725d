"""Finds skills in the folders of the user, then in those of the workspace."""

import os
from collections.abc import Collection, Iterable, Mapping

import msgspec
from msgspec.structs import replace

from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.records import SkillEntry
from handrail.settings.model import Settings
from handrail.settings.paths import expand_home, is_located_in, resolve_user_file
from handrail.skills.allowed_tools import format_allowed_tools, is_foreign
from handrail.skills.parser import FILE, read_skill
from handrail.skills.skill import Skill, SkillFolder
from handrail.workspace.directory import list_files, list_names
from handrail.workspace.facts import build_command_fact
from handrail.workspace.workspace import Workspace

_PROJECT_FOLDERS = (".handrail/skills", ".agents/skills", ".claude/skills")
_USER_FOLDERS = ("~/.agents/skills", "~/.claude/skills")
_MAX_SKILLS = 200
"""Skills in one folder."""
_MAX_FILES = 100
_MAX_LEVELS = 4


class SkillCatalog(msgspec.Struct, frozen=True):
    skills: tuple[Skill, ...] = ()
    """In the order of their names."""
    warnings: tuple[str, ...] = ()
    """About the folders."""

    def get(self, name: str) -> Skill | None:
        return next((skill for skill in self.skills if skill.name == name), None)


def list_skill_folders(settings: Settings, environ: Mapping[str, str]) -> tuple[SkillFolder, ...]:
    """The folders to search. Of two skills with one name, the first counts.

    The user's folders come first, so that a workspace cannot replace a skill of the user.
    """
    if not settings.skills.enabled:
        return ()
    own = os.path.join(os.path.dirname(resolve_user_file(environ)), "skills")
    home = expand_home("~", environ)
    user = (own, *(expand_home(path, environ) for path in _USER_FOLDERS))
    return (
        *(SkillFolder("settings", path, _abbreviate(path, home)) for path in settings.skills.folders),
        *(SkillFolder("user", path, _abbreviate(path, home)) for path in user),
        # The restricted profile may not read these.
        *(SkillFolder("project", path, path) for path in _PROJECT_FOLDERS if settings.profile != "restricted"),
    )


def find_skills(
    workspace: Workspace, places: Iterable[SkillFolder], *, disabled: Collection[str] = (), known: Collection[str] = ()
) -> SkillCatalog:
    """The skills in some folders. `known`: the available tools, for warnings about unknown ones."""
    found: dict[str, Skill] = {}
    warnings: list[str] = []
    for place in places:
        for skill in _find_in_folder(workspace, place, warnings):
            first = found.get(skill.name)
            if first is None:
                off = f"[skills] disable names {skill.name}" if skill.name in disabled else ""
                warned = (*skill.warnings, *_warn_of_unknown_tools(skill, known))
                found[skill.name] = replace(skill, problem=skill.problem or off, warnings=warned)
            elif not _is_same_folder(workspace, first, skill):  # the workspace may be the user's own folder
                second = f"another skill of this name, in {skill.shown}, is not used"
                found[skill.name] = replace(first, warnings=(*first.warnings, second))
    return SkillCatalog(tuple(found[name] for name in sorted(found)), tuple(warnings))


def add_files(workspace: Workspace, skill: Skill) -> Skill:
    """The skill with the list of its other files."""
    if skill.problem:
        return skill
    try:
        if skill.origin == "project":
            files = _list_files(workspace, skill.folder)
        else:
            with Workspace(skill.folder) as own:
                files = _list_files(own, ".")
    except (ToolError, UsageError):
        return skill  # it is gone
    return replace(skill, files=tuple(file for file in files if file != FILE))


def _is_same_folder(workspace: Workspace, one: Skill, other: Skill) -> bool:
    first, second = (os.path.realpath(os.path.join(workspace.main.path, skill.folder)) for skill in (one, other))
    return first == second


def _list_files(workspace: Workspace, path: str) -> tuple[str, ...]:
    with workspace.open_folder(path) as opened:
        return list_files(opened.descriptor, opened.real, _MAX_FILES, _MAX_LEVELS)


def _find_in_folder(workspace: Workspace, place: SkillFolder, warnings: list[str]) -> list[Skill]:
    try:
        if place.origin == "project":
            return _list_skills(workspace, workspace, place.path, place, warnings)
        if _is_in_workspace(workspace, place.path):
            return _list_skills(workspace, workspace, place.path, replace(place, origin="project"), warnings)
        with Workspace(place.path) as own:
            return _list_skills(workspace, own, ".", place, warnings)
    except UsageError:
        return []  # there is no such folder
    except ToolError as error:
        if error.code not in {"NOT_FOUND", "NOT_A_DIRECTORY"}:
            warnings.append(f"{place.shown} cannot be read")
        return []


def _is_in_workspace(workspace: Workspace, path: str) -> bool:
    """Whether the agent can write there. Then it is not the user's own."""
    return any(root.writable and is_located_in(path, root.path) for root in workspace.roots)


def _list_skills(
    workspace: Workspace, own: Workspace, path: str, place: SkillFolder, warnings: list[str]
) -> list[Skill]:
    """The skills in a folder of `own`."""
    with own.open_folder(path) as opened:
        names, count = list_names(opened.descriptor, _MAX_SKILLS)
    if count > _MAX_SKILLS:
        warnings.append(f"{place.shown} holds {count} names; only the first {_MAX_SKILLS} were checked")
    found = [_find_skill(workspace, place, name) for name in names if not name.startswith(".")]
    return [skill for skill in found if skill is not None]


def _find_skill(workspace: Workspace, place: SkillFolder, name: str) -> Skill | None:
    bare = Skill(name=name, origin=place.origin, shown=f"{place.shown}/{name}", folder=f"{place.path}/{name}")
    if place.origin == "project":
        return _read_if_present(workspace, bare.folder, bare)
    if _is_in_workspace(workspace, bare.folder):
        real = os.path.realpath(bare.folder)  # a link that leads outside finds nothing
        return _read_if_present(workspace, real, replace(bare, origin="project", folder=real))
    try:
        # The user may have linked it from elsewhere. Its files are below its real folder.
        with Workspace(bare.folder) as own:
            return _read_if_present(own, ".", replace(bare, folder=own.main.path))
    except UsageError:
        return None  # no folder


def _read_if_present(workspace: Workspace, path: str, bare: Skill) -> Skill | None:
    """None if the folder has no SKILL.md. One that cannot be read is a problem of the skill."""
    try:
        if build_command_fact(workspace, f"{path}/{FILE}", "delete").kind == "missing":
            return None
    except ToolError:
        return None
    return read_skill(workspace, path, bare)


def _warn_of_unknown_tools(skill: Skill, known: Collection[str]) -> list[str]:
    unknown = [tool for tool in skill.tools or () if known and tool not in known and not is_foreign(tool)]
    return [f"allowed-tools: unknown tools {', '.join(unknown[:10])}"] if unknown else []


def _abbreviate(path: str, home: str) -> str:
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path


def build_skill_entry(skill: Skill, *, active: bool) -> SkillEntry:
    return SkillEntry(
        name=skill.name,
        description=skill.description,
        source=skill.origin,
        path=skill.shown,
        active=active,
        usable=not skill.problem,
        problem=skill.problem or None,
        by_name_only=skill.by_name_only,
        allowed_tools=format_allowed_tools(skill.tools, skill.patterns),
        warnings=skill.warnings,
    )
