"""The tools of our own, each with what it needs of a session. One is loaded when it is first asked for."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from handrail.runtime.registry import BuiltinTool
from handrail.settings import Settings
from handrail.tools.contract import Background, Outputs, ReadMarks, Tool

if TYPE_CHECKING:
    from handrail.changes.recorder import Recorder
    from handrail.tools.commands import CommandEnvironment
    from handrail.tools.companions.skill_control import SkillBook
    from handrail.tools.records import Records
    from handrail.tools.searching import SessionSearch


class ToolServices:
    """What they need of a session."""

    def __init__(
        self,
        *,
        seen: ReadMarks,
        outputs: Outputs,
        records: "Records",
        recorder: "Callable[[], Recorder]",
        commands: "CommandEnvironment",
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
    def searching(self) -> "SessionSearch":
        """The engine that find and grep share."""
        from handrail.tools.searching import SessionSearch

        return SessionSearch(self.settings.search.ignore, self.settings.search.engine)


def list_builtin_tools(parts: ToolServices) -> dict[str, BuiltinTool]:
    """All of them in their order, and which of them are off until the settings enable them."""
    on = (_read, _write, _edit, _find, _grep, _ls, _exec, _process)
    off = (_apply_patch, _multi_edit, _delete, *_COMPANIONS)
    return {make.__name__[1:]: _later(make, parts, enabled=make in on) for make in (*on, *off)}


def _later(make: Callable[[ToolServices], Tool], parts: ToolServices, *, enabled: bool) -> BuiltinTool:
    return BuiltinTool(lambda: make(parts), enabled)


def _read(parts: ToolServices) -> Tool:
    from handrail.tools.read import build_read_tool

    return build_read_tool(parts.seen, parts.outputs, images=parts.settings.read.images)


def _write(parts: ToolServices) -> Tool:
    from handrail.tools.write import build_write_tool

    return build_write_tool(parts.seen, parts.records)


def _edit(parts: ToolServices) -> Tool:
    from handrail.tools.edit import build_edit_tool

    return build_edit_tool(parts.seen, parts.records)


def _find(parts: ToolServices) -> Tool:
    from handrail.tools.find import build_find_tool

    return build_find_tool(parts.searching)


def _grep(parts: ToolServices) -> Tool:
    from handrail.tools.grep import build_grep_tool

    return build_grep_tool(parts.searching, parts.outputs)


def _ls(parts: ToolServices) -> Tool:
    from handrail.tools.ls import build_ls_tool

    return build_ls_tool(parts.settings.search.ignore)


def _exec(parts: ToolServices) -> Tool:
    from handrail.tools.executing import build_exec_tool

    return build_exec_tool(parts.commands, parts.background, parts.recorder)


def _process(parts: ToolServices) -> Tool:
    from handrail.tools.process import build_process_tool

    return build_process_tool(parts.background)


def _apply_patch(parts: ToolServices) -> Tool:
    from handrail.tools.apply_patch import build_apply_patch_tool

    return build_apply_patch_tool(parts.seen, parts.records)


def _multi_edit(parts: ToolServices) -> Tool:
    from handrail.tools.multi_edit import build_multi_edit_tool

    return build_multi_edit_tool(parts.seen, parts.records)


def _delete(parts: ToolServices) -> Tool:
    from handrail.tools.delete import build_delete_tool

    return build_delete_tool(parts.seen, parts.records)


def _display(_: ToolServices) -> Tool:
    from handrail.tools.companions.display import build_display_tool

    return build_display_tool()


def _question(parts: ToolServices) -> Tool:
    from handrail.tools.companions.question import build_question_tool

    return build_question_tool(unattended=parts.unattended)


def _todo(_: ToolServices) -> Tool:
    from handrail.tools.companions.todo import build_todo_tool

    return build_todo_tool()


def _memory(parts: ToolServices) -> Tool:
    from handrail.store.memories import Memories
    from handrail.tools.companions.memory import build_memory_tool

    return build_memory_tool(Memories(parts.notes))


def _skill_list(parts: ToolServices) -> Tool:
    from handrail.tools.companions.skill_list import build_skill_list_tool

    return build_skill_list_tool(parts.skills.entries)


def _skill_control(parts: ToolServices) -> Tool:
    from handrail.tools.companions.skill_control import build_skill_control_tool

    return build_skill_control_tool(parts.skills)


_COMPANIONS = (_display, _question, _todo, _memory, _skill_list, _skill_control)
