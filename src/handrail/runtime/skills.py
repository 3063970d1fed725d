"""The skills of a session."""

import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from handrail.policy.names import can_hold_credentials
from handrail.protocol.decisions import Narrowing
from handrail.protocol.errors import ToolError, UsageError
from handrail.runtime.registry import ToolSet, build_tool_set
from handrail.settings import Settings
from handrail.skills.finding import SkillCatalog, add_files, find_skills, list_skill_folders
from handrail.skills.skill import Skill
from handrail.store.transcript import ActiveSkill, ActiveSkills
from handrail.workspace.facts import build_command_fact
from handrail.workspace.roots import Boundary, Root
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.protocol.records import SkillEntry
    from handrail.skills.skill import SkillFolder


# § [runtime.skills] The skills of a session: which there are, which are active, and what those leave of its tools.

_MAX_ACTIVE_SKILLS = 32
_LONG_BODY_CHARS = 20_000
"""Characters that may not fit into one result, so that the rest has to be read."""


class SessionSkills:
    """What of them counts is what was written down when they were activated, so that neither who changes their files
    nor who restarts the session loosens anything. Other processes activate too: who is about to decide looks again."""

    def __init__(
        self,
        workspace: Workspace,
        store: ActiveSkills,
        places: "Callable[[], tuple[SkillFolder, ...]]",
        disabled: tuple[str, ...],
        boundary: Callable[[], Boundary],
    ) -> None:
        self._workspace, self._store, self._places = workspace, store, places
        self._disabled, self._boundary = disabled, boundary
        self._lock = threading.Lock()
        self._active: tuple[ActiveSkill, ...] = ()
        self.any = False
        """Whether one is active."""
        self._base: ToolSet | None = None
        self.offer: ToolSet
        """What is offered now; there from `attach` on."""

    def attach(self, offer: ToolSet) -> None:
        """Says what is offered while no skill is active."""
        self._base = self.offer = offer
        self.refresh()

    def renew(self, make: Callable[[ToolSet], ToolSet]) -> None:
        """Says anew what is offered while no skill is active."""
        with self._lock:
            if self._base is not None:
                self._base = make(self._base)
                self._apply(self._active)

    def refresh(self) -> None:
        """Makes what is offered, and the roots, those of the skills that are active now. One look into the journal
        where nothing is new; none where there was never one."""
        if not self.any and self._store.none_yet():
            return
        with self._lock:  # else who looked first could come last, with what is no longer so
            active = self._store.list_skills()
            if active is not self._active:
                self._apply(active)

    def narrowing(self, tool: str) -> Narrowing | None:
        """What the active skills leave of a tool."""
        if not self.any:
            return None
        from handrail.skills.narrowing import find_restriction  # noqa: PLC0415  few sessions have active ones

        return find_restriction(tool, self._active)

    def found(self) -> "SkillCatalog":
        """All skills that there are now."""
        from handrail.skills.finding import find_skills  # noqa: PLC0415  only who asks for them

        known = () if self._base is None else self._base.registered
        return find_skills(self._workspace, self._places(), disabled=self._disabled, known=known)

    def skill(self, name: str) -> "Skill | None":
        """One skill, with its other files."""
        from handrail.skills.finding import add_files  # noqa: PLC0415  as above

        found = self.found().get(name)
        return None if found is None else add_files(self._workspace, found)

    def entries(self) -> "tuple[SkillEntry, ...]":
        """All of them, in the order of their names, also those that are active although they are gone."""
        self.refresh()
        found = self.found().skills
        active = {skill.name: skill for skill in self._active}
        entries = [build_skill_entry(skill, active=skill.name in active) for skill in found]
        gone = active.keys() - {skill.name for skill in found}
        return tuple(sorted([*entries, *(_gone(active[name]) for name in gone)], key=lambda one: one.name))

    def activate(self, skill: "Skill") -> ActiveSkill:
        """Makes a skill count from the next call on; ToolError where too many are active."""
        self.refresh()
        others = [one for one in self._active if one.name != skill.name]
        if len(others) >= _MAX_ACTIVE_SKILLS:
            raise ToolError("LIMIT_EXCEEDED", f"{_MAX_ACTIVE_SKILLS} skills are active. Deactivate one that is done.")
        active = ActiveSkill(
            name=skill.name,
            tools=skill.tools,
            patterns=skill.patterns,
            folders=self._folders(skill),
            outside=skill.origin != "project",
            has_files=bool(skill.files) or len(skill.body) > _LONG_BODY_CHARS,
        )
        self._store.put(active, f"The skill {skill.name} is active.")
        self.refresh()
        return active

    def deactivate(self, name: str) -> bool:
        """Ends a skill; whether it was active."""
        self.refresh()
        if name not in {skill.name for skill in self._active}:
            return False
        self._store.drop(name, f"The skill {name} is no longer active.")
        self.refresh()
        return True

    def active_names(self) -> tuple[str, ...]:
        """Those that are active now."""
        self.refresh()
        return tuple(skill.name for skill in self._active)

    def reaches(self, folder: str) -> bool:
        """Whether files in a folder can be read."""
        try:
            return build_command_fact(self._workspace, folder, "read").real is not None
        except ToolError:
            return False

    def _apply(self, active: tuple[ActiveSkill, ...]) -> None:
        base = self._base
        if base is None:
            return
        from handrail.skills.narrowing import collect_allowed_tools  # noqa: PLC0415  few sessions have active ones

        allowed = collect_allowed_tools(active, base.registered)
        self._bring(active)
        self.offer = base if allowed is None else base.restricted_to(allowed)
        self._active, self.any = active, bool(active)

    def _folders(self, skill: "Skill") -> tuple[str, ...]:
        if skill.origin != "project":
            return (skill.folder,)
        real = build_command_fact(self._workspace, skill.folder, "read").real
        return tuple(dict.fromkeys((skill.folder, real or skill.folder)))

    def _bring(self, active: tuple[ActiveSkill, ...]) -> None:
        """The folders of a person's own skills are read-only roots while these are active."""
        roots = self._workspace.root_sets
        wanted = [folder for skill in active if skill.outside for folder in skill.folders]
        if not wanted and not roots.sources["skills"]:
            return
        kept = [root for root in roots.sources["skills"] if root.path in wanted]
        fresh = [folder for folder in dict.fromkeys(wanted) if folder not in {root.path for root in kept}]
        roots.replace("skills", [*kept, *(root for folder in fresh if (root := self._root(folder)) is not None)])

    def _root(self, folder: str) -> Root | None:
        """None where it is in a root already, where it holds what nobody opens, or where it is gone."""
        boundary = self._boundary()
        roots = self._workspace.roots
        if any(_is_in(folder, root.path) or _is_in(root.path, folder) for root in roots):
            return None
        if boundary.find_closed_reason(folder) or can_hold_credentials(folder):
            return None
        try:
            root = Root(folder, writable=False)
        except UsageError:
            return None
        if root.path != folder:  # a link took its place
            root.close()
            return None
        return root


def build_skill_entry(skill: "Skill", *, active: bool) -> "SkillEntry":
    """A skill as it is listed."""
    from handrail.protocol.records import SkillEntry  # noqa: PLC0415  only who asks for them
    from handrail.skills.allowed import format_allowed_tools  # noqa: PLC0415  as above

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


def _gone(active: ActiveSkill) -> "SkillEntry":
    from handrail.protocol.records import SkillEntry  # noqa: PLC0415  as above
    from handrail.skills.allowed import format_allowed_tools  # noqa: PLC0415  as above

    return SkillEntry(
        name=active.name,
        description="",
        source="gone",
        path=active.folders[0] if active.folders else "",
        active=True,
        usable=False,
        problem="its file is gone; what it says of tools still counts until it is deactivated",
        by_name_only=False,
        allowed_tools=format_allowed_tools(active.tools, active.patterns),
        warnings=(),
    )


def _is_in(path: str, folder: str) -> bool:
    return os.path.commonpath((path, folder)) == folder


# § [runtime.skill_search] Which skills a session would find in a workspace. No session is opened, nothing is
# § written down.


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
