"""The tools of a session."""

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import zip_longest
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail.policy.config import MCP_PREFIX, TrustedServer, is_mcp_tool_excluded
from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.permissions import Permission
from handrail.protocol.text import render_value
from handrail.protocol.tool_spec import BASE_NAMES, ToolSpec
from handrail.protocol.wire import encode
from handrail.settings import Settings
from handrail.tools.exec.environment import CommandEnvironment
from handrail.tools.tool import Background, Outputs, ReadMarks, Tool

if TYPE_CHECKING:
    from handrail.changes.recorder import Recorder
    from handrail.runtime.foreign.source import ToolSource
    from handrail.tools.companions.skills import SkillBook
    from handrail.tools.search import SessionSearch


# § [runtime.registry] Every tool that was registered, and which of them a session offers.

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider takes; a list with one other name in it fails as a whole."""

_OF_COMMANDS: tuple[Permission, ...] = ("fs.read", "fs.write", "fs.delete", "git.write")


class BuiltinTool(NamedTuple):
    """A tool of our own that is made when it is first asked for: few sessions use all of them."""

    make: Callable[[], Tool]
    enabled: bool
    """As its spec says."""


class ToolRegistry:
    """Tools by name. No tool replaces another, least of all a base tool."""

    def __init__(self, own: Mapping[str, BuiltinTool], others: Iterable[Tool] = ()) -> None:
        self._own = own
        self._tools: dict[str, Tool] = {}
        self.names = tuple(own)
        """All, in the order they were registered."""
        for tool in others:
            self.add(tool)
        self.other_names = self.names
        """All but those of other servers, which come and go."""

    def add(self, tool: Tool) -> None:
        """Registers a tool that is not one of the base tools; UsageError when its name is taken, reserved or none."""
        if not isinstance(tool, Tool):  # pyright: ignore[reportUnnecessaryIsInstance]  a function without its decorator
            raise UsageError(f"{tool!r} is no tool; declare a function with @tool")
        name = tool.spec.name
        if not _NAME.fullmatch(name):
            rule = "a tool's name has letters, digits, _ and - only, at most 64, or model providers reject it"
            raise UsageError(f"{rule}: {name[:140]!r}")
        if name.casefold() in BASE_NAMES:
            raise UsageError(f"the tool {name!r} would shadow a base tool; give it another name")
        if tool.spec.category == "builtin":
            raise UsageError(f"the tool {name!r} has the category builtin, which only the base tools have; use custom")
        if name in self.names:
            raise UsageError(f"a tool named {name!r} is registered already")
        self._tools[name] = tool
        self.names = (*self.names, name)

    def with_foreign(self, tools: Iterable[Tool]) -> "ToolRegistry":
        """The same, with these tools of other servers in the place of those that it had."""
        registry = ToolRegistry(self._own)
        registry.other_names = registry.names = self.other_names
        registry._tools = {name: tool for name, tool in self._tools.items() if name in self.other_names}
        for tool in tools:
            registry.add(tool)
        return registry

    def get(self, name: str) -> Tool | None:
        """The tool of exactly this name."""
        tool = self._tools.get(name)
        if tool is None and (later := self._own.get(name)) is not None:
            tool = self._tools.setdefault(name, later.make())
        return tool

    def is_off(self, name: str) -> bool:
        """Whether a tool is off until somebody enables it. To know that, none of our own is made."""
        later = self._own.get(name)
        return not (self._tools[name].spec.enabled if later is None else later.enabled)


class ToolSet:
    """What a session offers: registered, enabled, within the agent's permissions and what active skills allow."""

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        enable: Collection[str] = (),
        disable: Collection[str] = (),
        deny: Collection[Permission] = (),
        allowed: Collection[str] | None = None,
    ) -> None:
        _refuse_unknown("enable", enable, registry)
        _refuse_unknown("disable", disable, registry)
        self._registry = registry
        self._enable, self._disable, self._deny, self._allowed = enable, disable, deny, allowed
        self.names = tuple(name for name in registry.names if self._reason(name) is None)
        self._made: dict[str, Tool] = {}

    def restricted_to(self, allowed: Collection[str] | None) -> "ToolSet":
        """The same, with only what active skills allow; all of it where they do not say."""
        given = {"enable": self._enable, "disable": self._disable}
        return ToolSet(self._registry, **given, deny=self._deny, allowed=allowed)

    def with_foreign(self, make: Callable[[ToolRegistry, Callable[[str], bool]], ToolRegistry]) -> "ToolSet":
        """The same over another registry, which is made of this one and of whether a tool is disabled."""
        given = {"enable": self._enable, "disable": self._disable}
        return ToolSet(make(self._registry, self._is_disabled), **given, deny=self._deny, allowed=self._allowed)

    def unmatched(self) -> tuple[str, ...]:
        """What the settings enable or disable that is no tool here, in words: another program may bring it."""
        return tuple(
            f"[tools] {setting}: there is no tool {render_value(name)} here, so nothing was {setting}d."
            " handrail tools lists the tools."
            for setting, names in (("enable", self._enable), ("disable", self._disable))
            for name in names
            if not _may_be(name, self._registry)
        )

    def get(self, name: str) -> Tool | None:
        """The tool of exactly this name, if it is offered."""
        tool = self._made.get(name)
        if tool is None and name in self.names and (tool := self._registry.get(name)) is not None:
            self._made[name] = tool
        return tool

    def get_registered(self, name: str) -> Tool | None:
        """The tool of exactly this name, offered or not: for calls of before, when it may have been."""
        return self._registry.get(name)

    @property
    def registered(self) -> tuple[str, ...]:
        """The names of all tools, offered or not."""
        return self._registry.names

    def denies(self, permission: Permission) -> bool:
        """Whether no tool is offered that needs it."""
        return permission in self._deny

    def why_off(self, name: str) -> str | None:
        """Why a registered tool is not offered, for the person whose settings these are; None where it is, or is not
        registered."""
        reason = self._reason(name) if name in self.registered else None
        return f"{name} is off{reason}" if reason else None

    def _reason(self, name: str) -> str | None:
        if self._is_disabled(name):
            return ": [tools] disable names it."
        if denied := self._denied(name):
            are = "are" if len(denied) > 1 else "is"
            return f": it needs {' and '.join(denied)}, which {are} denied here ([tools] deny)."
        if self._registry.is_off(name) and name not in self._enable:
            return f'; [tools] enable = ["{name}"] offers it.'
        return None if self._allowed is None or name in self._allowed else ": no active skill allows it."

    def _is_disabled(self, name: str) -> bool:
        if name in self._disable or not self._disable or not name.startswith(MCP_PREFIX):
            return name in self._disable
        return is_mcp_tool_excluded(self._disable, name)

    def _denied(self, name: str) -> list[Permission]:
        tool = self._registry.get(name) if self._deny else None
        return [] if tool is None else [needed for needed in _used_by(tool.spec) if needed in self._deny]

    def differing_in_case(self, name: str) -> Tool | None:
        """The only tool whose name differs from this one in case alone."""
        same = [own for own in self.names if own.casefold() == name.casefold()]
        return self.get(same[0]) if len(same) == 1 else None

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The offered tools, in order."""
        return tuple(tool for name in self.names if (tool := self.get(name)) is not None)


def _used_by(spec: ToolSpec) -> tuple[Permission, ...]:
    """What a tool needs; a command can do everything that can be done to files, and one of another server whatever that
    can."""
    if spec.foreign is not None:
        return spec.foreign.reach
    return spec.permissions if "proc.exec" not in spec.permissions else (*spec.permissions, *_OF_COMMANDS)


def _refuse_unknown(setting: str, names: Collection[str], registry: ToolRegistry) -> None:
    """A misspelt name would be a tool that is missing, or one that is still there, without a word.

    A name that is like none here is only told: a user's settings may speak of tools that only some programs bring. So
    is one that is like a tool of another server: what that lists in the middle of a session ends none.
    """
    for name in names:
        if not _may_be(name, registry) and (near := find_nearest_name(name, registry.other_names)):
            raise UsageError(f"there is no tool {render_value(name)} ([tools] {setting}); did you mean {near}?")


def _may_be(name: str, registry: ToolRegistry) -> bool:
    """Whether there is a tool of this name, or may be one once its server has listed it."""
    return name in BASE_NAMES or name in registry.names or name.casefold().startswith(MCP_PREFIX)


def find_nearest_name(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant."""
    from difflib import get_close_matches

    near = get_close_matches(name[:128].lower(), list(names), n=1, cutoff=0.75)
    return near[0] if near else None


# § [runtime.own_tools] The tools of our own, each with what it needs of a session. One is loaded when it is first
# § asked for.


class ToolServices:
    """What they need of a session."""

    def __init__(
        self,
        *,
        seen: ReadMarks,
        outputs: Outputs,
        records: "Recorder",
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
        from handrail.tools.search import SessionSearch

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
    from handrail.tools.exec.tool import build_exec_tool

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
    from handrail.tools.companions.skills import build_skill_list_tool

    return build_skill_list_tool(parts.skills.entries)


def _skill_control(parts: ToolServices) -> Tool:
    from handrail.tools.companions.skills import build_skill_control_tool

    return build_skill_control_tool(parts.skills)


_COMPANIONS = (_display, _question, _todo, _memory, _skill_list, _skill_control)


# § [runtime.discovery] Finds custom tools: in installed packages (entry points) and in folders that were named.

GROUP = "handrail.tools"


def load_configured_tools(settings: Settings) -> list[Tool]:
    """The tools that settings ask for."""
    found = [tool for folder in settings.tools.folders for tool in load_folder_tools(folder)]
    return found + load_installed_tools() if settings.tools.installed else found


def load_installed_tools() -> list[Tool]:
    """The tools that installed packages announce under `handrail.tools`: a Tool, or a module that has some."""
    from importlib.metadata import entry_points

    found: list[Tool] = []
    for entry in entry_points(group=GROUP):
        try:
            source = entry.load()
        except (Exception, SystemExit) as error:  # whatever a stranger's package does wrong, it is named
            raise UsageError(f"the entry point {entry.name!r} does not load: {_told(error)}") from error
        found += collect_tools(source, f"entry point {entry.name!r}")
    return found


def load_folder_tools(folder: str) -> list[Tool]:
    """The tools of every Python file in a folder. This runs those files: name only folders you trust."""
    from importlib.util import module_from_spec, spec_from_file_location

    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".py") and not name.startswith("_"))
    except OSError as error:
        raise UsageError(f"the tool folder {folder!r} cannot be read: {error.strerror}") from error
    found: list[Tool] = []
    for name in names:
        path = os.path.join(folder, name)
        # Two folders may have a file of the same name.
        place = sha256(os.path.abspath(path).encode("utf-8", "surrogateescape")).hexdigest()[:12]
        spec = spec_from_file_location(f"handrail_tools_{place}_{name.removesuffix('.py')}", path)
        if spec is None or spec.loader is None:
            raise UsageError(f"the tool file {path!r} cannot be loaded")
        sys.modules[spec.name] = module = module_from_spec(spec)  # dataclasses and pickle look it up there
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:  # whatever a stranger's file does wrong, it is named
            sys.modules.pop(spec.name, None)
            raise UsageError(f"the tool file {path!r} does not load: {_told(error)}") from error
        found += collect_tools(module, path)
    return found


def collect_tools(source: object, where: str) -> list[Tool]:
    """The tools that a module or an entry point holds."""
    if isinstance(source, Tool):
        return [source]
    if isinstance(source, ModuleType):
        found = {id(value): value for value in vars(source).values() if isinstance(value, Tool)}
        return list(found.values())
    raise UsageError(f"{where} is neither a tool nor a module with tools")


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


# § [runtime.offering] What a session would offer, for who only wants to know: no session is opened.


def build_tool_set(settings: Settings) -> ToolSet:
    """The tools that a session with these settings offers. They describe themselves; without a session none can run."""
    nothing: Any = _NoSession()
    parts = ToolServices(
        seen=nothing,
        outputs=nothing,
        records=nothing,
        recorder=nothing.recorder,
        commands=CommandEnvironment(settings, "", {}),
        background=nothing,
        settings=settings,
        notes="",
        skills=nothing,
    )
    tools = settings.tools
    registry = ToolRegistry(list_builtin_tools(parts), load_configured_tools(settings))
    return ToolSet(registry, enable=tools.enable, disable=tools.disable, deny=tools.deny)


def list_foreign_specs(
    sources: "Iterable[ToolSource]", vouched: tuple[TrustedServer, ...], disable: Collection[str] = ()
) -> list[ToolSpec]:
    """What other servers offer, as a session would have it; they are started for that."""
    from handrail.policy.decide import is_read_only_tool
    from handrail.protocol.decisions import ForeignFact
    from handrail.runtime.foreign.call import build_foreign_tool
    from handrail.runtime.foreign.pins import PinStore
    from handrail.runtime.foreign.schema import find_tool_problem
    from handrail.store.grants import KnownTools

    nothing = PinStore(KnownTools(""))  # what is only described was met by nobody
    specs: list[ToolSpec] = []
    for source in sources:
        for one in source.listed():
            fact = ForeignFact(server=source.server, tool=one.name, read_only=one.read_only)
            if not find_tool_problem(one):
                specs.append(build_foreign_tool(source, one, nothing, looks=is_read_only_tool(fact, vouched)).spec)
    specs = [spec for spec in specs if not is_mcp_tool_excluded(disable, spec.name)]
    fits = select_fitting(specs)
    return [spec for spec in specs if spec.name in fits]


class _NoSession:
    """What the tools need of a session, where there is none."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_: object, **__: object) -> Any:
        raise ToolError("UNAVAILABLE", "Without a session nothing runs.")


# § [runtime.foreign.fitting] What of all servers' tools fits into one question: with more of them, a provider
# § refuses every one.

MAX_OFFERED_TOOLS = 100
"""Tools of all other servers. The strictest providers take 128, of which some are ours."""
MAX_SPEC_CHARACTERS = 400_000
"""Of their descriptions and schemas together: about half of what models take."""


def select_fitting(specs: Iterable[ToolSpec]) -> set[str]:
    """The names of those that fit. Servers take turns, so that none takes the room of another."""
    by_server: dict[str, list[ToolSpec]] = {}
    for spec in specs:
        by_server.setdefault(spec.server, []).append(spec)
    found: set[str] = set()
    room = MAX_SPEC_CHARACTERS
    for spec in _in_turns(tuple(by_server.values())):
        size = len(spec.description) + (len(encode(spec.foreign.input_schema)) if spec.foreign is not None else 0)
        if len(found) < MAX_OFFERED_TOOLS and size <= room:
            room -= size
            found.add(spec.name)
    return found


def _in_turns(lists: Sequence[list[ToolSpec]]) -> Iterator[ToolSpec]:
    return (spec for turn in zip_longest(*lists) for spec in turn if spec is not None)
