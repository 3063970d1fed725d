"""Which skills a session would find in a workspace. No session is opened, nothing is written down."""

from collections.abc import Mapping

from handrail.runtime.opening import offered
from handrail.settings import Settings
from handrail.skills.finding import Found, find_skills, places_of
from handrail.workspace.root import Root
from handrail.workspace.workspace import Workspace


def skills_in(workspace: str, settings: Settings, environ: Mapping[str, str]) -> Found:
    """The skills that there are, usable or not, in the order of their names."""
    extra = [Root(path, writable=False) for path in (*settings.paths.read_only, *settings.paths.writable)]
    with Workspace(workspace, *extra) as house:
        known = offered(settings).registered
        return find_skills(house, places_of(settings, environ), disabled=settings.skills.disable, known=known)


def has_usable_skill(workspace: str, settings: Settings, environ: Mapping[str, str]) -> bool:
    """Whether there is one that a model may be told of: then it is worth while to offer the tools for it."""
    found = skills_in(workspace, settings, environ).skills
    return any(not skill.problem and not skill.by_name_only for skill in found)
