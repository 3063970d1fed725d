"""Finds skills: in the places of the person, then in those of the workspace. The first of a name counts."""

import os
from collections.abc import Collection, Iterable, Mapping

import msgspec
from msgspec.structs import replace

from handrail.protocol.errors import ToolError, UsageError
from handrail.settings.model import Settings
from handrail.settings.paths import expand_home, is_located_in, resolve_user_file
from handrail.skills.allowed import is_foreign
from handrail.skills.reading import FILE, read_skill
from handrail.skills.skill import Skill, SkillFolder
from handrail.workspace.directory import list_files, list_names
from handrail.workspace.facts import build_command_fact
from handrail.workspace.workspace import Workspace

_OF_PROJECTS = (".handrail/skills", ".agents/skills", ".claude/skills")
_OF_PEOPLE = ("~/.agents/skills", "~/.claude/skills")
_MAX_SKILLS = 200
"""Skills in one place."""
_MAX_FILES = 100
_MAX_LEVELS = 4


class SkillCatalog(msgspec.Struct, frozen=True):
    """All skills, in the order of their names, and what a person should know of the places they were looked for in."""

    skills: tuple[Skill, ...] = ()
    warnings: tuple[str, ...] = ()

    def get(self, name: str) -> Skill | None:
        """The skill of exactly this name."""
        return next((skill for skill in self.skills if skill.name == name), None)


def list_skill_folders(settings: Settings, environ: Mapping[str, str]) -> tuple[SkillFolder, ...]:
    """Where skills are looked for; of two with one name, the one in the earlier place counts.

    The person's own come first: else a workspace could put its text in the place of one that the person chose.
    """
    if not settings.skills.enabled:
        return ()
    own = os.path.join(os.path.dirname(resolve_user_file(environ)), "skills")
    home = expand_home("~", environ)
    people = (own, *(expand_home(path, environ) for path in _OF_PEOPLE))
    return (
        *(SkillFolder("settings", path, _as_written(path, home)) for path in settings.skills.folders),
        *(SkillFolder("user", path, _as_written(path, home)) for path in people),
        # What the restricted profile may read is a short list, and these are not on it.
        *(SkillFolder("project", path, path) for path in _OF_PROJECTS if settings.profile != "restricted"),
    )


def find_skills(
    workspace: Workspace, places: Iterable[SkillFolder], *, disabled: Collection[str] = (), known: Collection[str] = ()
) -> SkillCatalog:
    """The skills in some places. `known`: the tools that there are, for a word about those that there are not."""
    taken: dict[str, Skill] = {}
    warnings: list[str] = []
    for place in places:
        for skill in _in_place(workspace, place, warnings):
            first = taken.get(skill.name)
            if first is not None and _is_same(workspace, first, skill):
                continue  # one folder, found twice: the workspace is where the person keeps their own
            if first is None:
                off = f"[skills] disable names {skill.name}" if skill.name in disabled else ""
                taken[skill.name] = replace(skill, problem=skill.problem or off, warnings=_with_unknown(skill, known))
            else:
                second = f"another skill of this name, in {skill.shown}, is not used"
                taken[skill.name] = replace(first, warnings=(*first.warnings, second))
    return SkillCatalog(tuple(taken[name] for name in sorted(taken)), tuple(warnings))


def _is_same(workspace: Workspace, one: Skill, other: Skill) -> bool:
    first, second = (os.path.realpath(os.path.join(workspace.main.path, skill.folder)) for skill in (one, other))
    return first == second


def add_files(workspace: Workspace, skill: Skill) -> Skill:
    """The same, with its other files: who only lists skills need not look for them."""
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


def _list_files(workspace: Workspace, path: str) -> tuple[str, ...]:
    with workspace.open_folder(path) as opened:
        return list_files(opened.descriptor, opened.real, _MAX_FILES, _MAX_LEVELS)


def _in_place(workspace: Workspace, place: SkillFolder, warnings: list[str]) -> list[Skill]:
    try:
        if place.origin == "project":
            return _skills(workspace, workspace, place.path, place, warnings)
        if _is_the_agents(workspace, place.path):
            return _skills(workspace, workspace, place.path, replace(place, origin="project"), warnings)
        with Workspace(place.path) as own:
            return _skills(workspace, own, ".", place, warnings)
    except UsageError:
        return []  # there is no such folder
    except ToolError as error:
        if error.code not in {"NOT_FOUND", "NOT_A_DIRECTORY"}:
            warnings.append(f"{place.shown} cannot be looked into")
        return []


def _is_the_agents(workspace: Workspace, path: str) -> bool:
    """Whether who works here could put a link there: then it is no more the person's than the rest of the workspace."""
    return any(root.writable and is_located_in(path, root.path) for root in workspace.roots)


def _skills(workspace: Workspace, own: Workspace, path: str, place: SkillFolder, warnings: list[str]) -> list[Skill]:
    """Those in a place, which is in `own`."""
    with own.open_folder(path) as opened:
        names, count = list_names(opened.descriptor, _MAX_SKILLS)
    if count > _MAX_SKILLS:
        warnings.append(f"{place.shown} holds {count} names; only the first {_MAX_SKILLS} were looked at")
    found = [_skill(workspace, place, name) for name in names if not name.startswith(".")]
    return [skill for skill in found if skill is not None]


def _skill(workspace: Workspace, place: SkillFolder, name: str) -> Skill | None:
    bare = Skill(name=name, origin=place.origin, shown=f"{place.shown}/{name}", folder=f"{place.path}/{name}")
    if place.origin == "project":
        return _read(workspace, bare.folder, bare)
    if _is_the_agents(workspace, bare.folder):
        real = os.path.realpath(bare.folder)  # a link that somebody put there since leads out, and so to nothing
        return _read(workspace, real, replace(bare, origin="project", folder=real))
    try:
        # A person may have linked it from elsewhere. Its files are looked for below where it really is.
        with Workspace(bare.folder) as own:
            return _read(own, ".", replace(bare, folder=own.main.path))
    except UsageError:
        return None  # no folder


def _read(workspace: Workspace, path: str, bare: Skill) -> Skill | None:
    try:
        if not _has_skill(workspace, path):
            return None
    except ToolError:
        return None
    return read_skill(workspace, path, bare)


def _has_skill(workspace: Workspace, path: str) -> bool:
    """Whether a folder has such a name, whatever it is: a link that leads nowhere good is told, not passed over."""
    return build_command_fact(workspace, f"{path}/{FILE}", "delete").kind != "missing"


def _with_unknown(skill: Skill, known: Collection[str]) -> tuple[str, ...]:
    if skill.tools is None or not known:
        return skill.warnings
    unknown = [tool for tool in skill.tools if tool not in known and not is_foreign(tool)]
    told = f"allowed-tools has {', '.join(unknown[:10])}, which there is no tool of here" if unknown else ""
    return (*skill.warnings, told) if told else skill.warnings


def _as_written(path: str, home: str) -> str:
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
