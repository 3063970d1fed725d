"""The skills that exist for a session, with the active ones."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from handrail.protocol.decisions import Narrowing
from handrail.protocol.errors import ToolError
from handrail.protocol.records import SkillEntry
from handrail.runtime.registry import ToolSet
from handrail.store.conversation_state import ActiveSkill, ActiveSkills
from handrail.workspace.facts import build_command_fact
from handrail.workspace.roots import Boundary, Root, is_inside, open_root
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.skills.discovery import SkillCatalog
    from handrail.skills.skill import Skill, SkillFolder

_MAX_ACTIVE_SKILLS = 32
_LONG_BODY_CHARS = 20_000
"""A longer body may not fit into one result, so that the rest is read from the file."""


class SessionSkills:
    """The active skills of a session, and the tools that they leave.

    An active skill counts as it was stored at its activation. Neither a change of its file nor a restart loosens it.
    Other processes activate skills too, so `refresh` comes before each decision.
    """

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
        """Whether a skill is active."""
        self._base: ToolSet | None = None
        self.offer: ToolSet
        """The tools that are offered now. Set by `attach`."""

    def attach(self, offer: ToolSet) -> None:
        """Sets the tools that are offered while no skill is active."""
        self._base = self.offer = offer
        self.refresh()

    def renew(self, make: Callable[[ToolSet], ToolSet]) -> None:
        """Replaces the tools that are offered while no skill is active."""
        with self._lock:
            if self._base is not None:
                self._base = make(self._base)
                self._apply(self._active)

    def refresh(self) -> None:
        with self._lock:  # otherwise a slow thread could apply an older state last
            active = self._store.list_skills()
            if active is not self._active:
                self._apply(active)

    def narrowing(self, tool: str) -> Narrowing | None:
        if not self.any:
            return None
        return _load_allowed_tools().find_restriction(tool, self._active)

    def found(self) -> "SkillCatalog":
        known = () if self._base is None else self._base.registered
        return _load_discovery().find_skills(self._workspace, self._places(), disabled=self._disabled, known=known)

    def skill(self, name: str) -> "Skill | None":
        """A skill with its other files."""
        skill = self.found().get(name)
        return None if skill is None else _load_discovery().add_files(self._workspace, skill)

    def entries(self) -> tuple[SkillEntry, ...]:
        """All skills by name, also active ones whose file is gone."""
        self.refresh()
        skills = self.found().skills
        active = {skill.name: skill for skill in self._active}
        entries = [_load_discovery().build_skill_entry(skill, active=skill.name in active) for skill in skills]
        gone = active.keys() - {skill.name for skill in skills}
        return tuple(sorted([*entries, *(_build_gone_entry(active[name]) for name in gone)], key=lambda one: one.name))

    def activate(self, skill: "Skill") -> ActiveSkill:
        """Activates a skill from the next call on. ToolError if too many are active."""
        self.refresh()
        others = [one for one in self._active if one.name != skill.name]
        if len(others) >= _MAX_ACTIVE_SKILLS:
            raise ToolError("LIMIT_EXCEEDED", f"{_MAX_ACTIVE_SKILLS} skills are active. Deactivate one that is done.")
        active = ActiveSkill(
            name=skill.name,
            tools=skill.tools,
            patterns=skill.patterns,
            folders=self._list_folders(skill),
            outside=skill.origin != "project",
            has_files=bool(skill.files) or len(skill.body) > _LONG_BODY_CHARS,
        )
        self._store.put(active, f"The skill {skill.name} is active.")
        self.refresh()
        return active

    def deactivate(self, name: str) -> bool:
        """Deactivates a skill. Returns whether it was active."""
        if name not in self.active_names():
            return False
        self._store.drop(name, f"The skill {name} is no longer active.")
        self.refresh()
        return True

    def active_names(self) -> tuple[str, ...]:
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
        allowed = _load_allowed_tools().collect_allowed_tools(active, base.registered)
        self._open_folders(active)
        self.offer = base if allowed is None else base.restricted_to(allowed)
        self._active, self.any = active, bool(active)

    def _list_folders(self, skill: "Skill") -> tuple[str, ...]:
        if skill.origin != "project":
            return (skill.folder,)
        real = build_command_fact(self._workspace, skill.folder, "read").real
        return tuple(dict.fromkeys((skill.folder, real or skill.folder)))

    def _open_folders(self, active: tuple[ActiveSkill, ...]) -> None:
        """Makes the folders of a person's own skills read-only roots while these are active."""
        root_sets = self._workspace.root_sets
        wanted = dict.fromkeys(folder for skill in active if skill.outside for folder in skill.folders)
        kept = [root for root in root_sets.sources["skills"] if root.path in wanted]
        if not wanted and not root_sets.sources["skills"]:
            return
        added = [self._open_root(folder) for folder in wanted if folder not in {root.path for root in kept}]
        root_sets.replace("skills", [*kept, *(root for root in added if root is not None)])

    def _open_root(self, folder: str) -> Root | None:
        """A root of a folder. None if it overlaps another root, may never be opened, or is gone."""
        if any(is_inside(folder, root.path) or is_inside(root.path, folder) for root in self._workspace.roots):
            return None
        if self._boundary().find_closed_reason(folder):
            return None
        root = open_root(folder, writable=False)
        if root is not None:
            root.opened_by_person = False  # a skill opens it, so no request extends it
        return root


def _build_gone_entry(active: ActiveSkill) -> SkillEntry:
    return SkillEntry(
        name=active.name,
        description="",
        source="gone",
        path=active.folders[0] if active.folders else "",
        active=True,
        usable=False,
        problem="its file is gone; its list of tools still applies until you deactivate the skill",
        by_name_only=False,
        allowed_tools=_load_allowed_tools().format_allowed_tools(active.tools, active.patterns),
        warnings=(),
    )


def _load_discovery():  # the type is that of the module
    from handrail.skills import discovery  # noqa: PLC0415  few sessions use skills

    return discovery


def _load_allowed_tools():
    from handrail.skills import allowed_tools  # noqa: PLC0415  few sessions have active skills

    return allowed_tools
