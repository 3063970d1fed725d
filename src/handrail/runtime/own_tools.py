"""The tools of our own, each with what it needs of a session. One is loaded when it is first asked for."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from handrail.runtime.registry import Later
from handrail.settings import Settings
from handrail.tools.contract import Background, Outputs, Seen, Tool

if TYPE_CHECKING:
    from handrail.changes.recorder import Recorder
    from handrail.tools.commands import Commands
    from handrail.tools.companions.skill_control import SkillBook
    from handrail.tools.saving import Records
    from handrail.tools.searching import Searching


class Parts:
    """What they need of a session."""

    def __init__(
        self,
        *,
        seen: Seen,
        outputs: Outputs,
        records: "Records",
        recorder: "Callable[[], Recorder]",
        commands: "Commands",
        background: Background,
        settings: Settings,
        notes: str,
        skills: "SkillBook",
        unattended: bool = False,
    ) -> None:
        """`notes`: the folder of the notes about the workspace."""
        self.seen, self.outputs, self.records, self.recorder = seen, outputs, records, recorder
        self.commands, self.background, self.settings = commands, background, settings
        self.notes, self.skills, self.unattended = notes, skills, unattended

    @cached_property
    def searching(self) -> "Searching":
        """The engine that find and grep share."""
        from handrail.tools.searching import Searching

        return Searching(self.settings.search.ignore, self.settings.search.engine)


def own_tools(parts: Parts) -> dict[str, Later]:
    """All of them in their order, and which of them are off until the settings enable them."""
    on = (_read, _write, _edit, _find, _grep, _ls, _exec, _process)
    off = (_apply_patch, _multi_edit, _delete, *_COMPANIONS)
    return {make.__name__[1:]: _later(make, parts, enabled=make in on) for make in (*on, *off)}


def _later(make: Callable[[Parts], Tool], parts: Parts, *, enabled: bool) -> Later:
    return Later(lambda: make(parts), enabled)


def _read(parts: Parts) -> Tool:
    from handrail.tools.read import read_tool

    return read_tool(parts.seen, parts.outputs, images=parts.settings.read.images)


def _write(parts: Parts) -> Tool:
    from handrail.tools.write import write_tool

    return write_tool(parts.seen, parts.records)


def _edit(parts: Parts) -> Tool:
    from handrail.tools.edit import edit_tool

    return edit_tool(parts.seen, parts.records)


def _find(parts: Parts) -> Tool:
    from handrail.tools.find import find_tool

    return find_tool(parts.searching)


def _grep(parts: Parts) -> Tool:
    from handrail.tools.grep import grep_tool

    return grep_tool(parts.searching, parts.outputs)


def _ls(parts: Parts) -> Tool:
    from handrail.tools.ls import ls_tool

    return ls_tool(parts.settings.search.ignore)


def _exec(parts: Parts) -> Tool:
    from handrail.tools.exec import exec_tool

    return exec_tool(parts.commands, parts.background, parts.recorder)


def _process(parts: Parts) -> Tool:
    from handrail.tools.process import process_tool

    return process_tool(parts.background)


def _apply_patch(parts: Parts) -> Tool:
    from handrail.tools.apply_patch import apply_patch_tool

    return apply_patch_tool(parts.seen, parts.records)


def _multi_edit(parts: Parts) -> Tool:
    from handrail.tools.multi_edit import multi_edit_tool

    return multi_edit_tool(parts.seen, parts.records)


def _delete(parts: Parts) -> Tool:
    from handrail.tools.delete import delete_tool

    return delete_tool(parts.seen, parts.records)


def _display(_: Parts) -> Tool:
    from handrail.tools.companions.display import display_tool

    return display_tool()


def _question(parts: Parts) -> Tool:
    from handrail.tools.companions.question import question_tool

    return question_tool(unattended=parts.unattended)


def _todo(_: Parts) -> Tool:
    from handrail.tools.companions.todo import todo_tool

    return todo_tool()


def _memory(parts: Parts) -> Tool:
    from handrail.store.memories import Memories
    from handrail.tools.companions.memory import memory_tool

    return memory_tool(Memories(parts.notes))


def _skill_list(parts: Parts) -> Tool:
    from handrail.tools.companions.skill_list import skill_list_tool

    return skill_list_tool(parts.skills.entries)


def _skill_control(parts: Parts) -> Tool:
    from handrail.tools.companions.skill_control import skill_control_tool

    return skill_control_tool(parts.skills)


_COMPANIONS = (_display, _question, _todo, _memory, _skill_list, _skill_control)
