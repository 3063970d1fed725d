"""Which skills a session would find in a workspace. No session is opened, nothing is written down."""

from collections.abc import Mapping

from handrail.runtime.offering import build_tool_set
from handrail.settings import Settings
from handrail.skills.finding import SkillCatalog, add_files, find_skills, list_skill_folders
from handrail.skills.skill import Skill
from handrail.workspace.roots import Root
from handrail.workspace.workspace import Workspace


def load_skills(workspace: str, settings: Settings, environ: Mapping[str, str]) -> SkillCatalog:
    """The skills that there are, usable or not, in the order of their names."""
    with _opened(workspace, settings) as house:
        return _found(house, settings, environ)


def find_skill(workspace: str, settings: Settings, environ: Mapping[str, str], name: str) -> Skill | None:
    """One of them, with its other files."""
    with _opened(workspace, settings) as house:
        skill = _found(house, settings, environ).get(name)
        return None if skill is None else add_files(house, skill)


def has_usable_skill(workspace: str, settings: Settings, environ: Mapping[str, str]) -> bool:
    """Whether there is one that can be activated, be it only by its name: then it is worth while to offer the tools for
    it."""
    return any(not skill.problem for skill in load_skills(workspace, settings, environ).skills)


def _opened(workspace: str, settings: Settings) -> Workspace:
    extra = [Root(path, writable=False) for path in settings.paths.read_only]
    return Workspace(workspace, *extra, *(Root(path) for path in settings.paths.writable))


def _found(house: Workspace, settings: Settings, environ: Mapping[str, str]) -> SkillCatalog:
    known = build_tool_set(settings).registered
    return find_skills(house, list_skill_folders(settings, environ), disabled=settings.skills.disable, known=known)
