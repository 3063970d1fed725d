"""The tools that exist in a session, with the set that it offers."""

import os
import sys
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from handrail.policy.config import MCP_PREFIX, is_mcp_tool_excluded
from handrail.protocol.arguments import CONVERSION_ERRORS, build_argument_error, explain_conversion_error
from handrail.protocol.digest import sha256
from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.permissions import Permission
from handrail.protocol.text import find_similar, render_value
from handrail.protocol.tool_spec import BASE_NAMES, ForeignArguments, ToolSpec
from handrail.protocol.wire import convert
from handrail.settings import Settings
from handrail.settings.merge import ToolFile
from handrail.tools.tool import Background, Outputs, ReadMarks, Tool

if TYPE_CHECKING:
    from handrail.changes.recorder import Recorder
    from handrail.lsp.check import ChangeCheck
    from handrail.lsp.servers import LanguageServers
    from handrail.store.memories import Memories
    from handrail.tools.command_environment import CommandEnvironment
    from handrail.tools.companions.skills import SkillBook
    from handrail.tools.file_tool import FileTool
    from handrail.tools.search import SessionSearch

_ENTRY_POINTS = "handrail.tools"
_LOAD_SECONDS = 30.0
"""How long third-party code may take to load."""
Loaded = TypeVar("Loaded")
_COMMAND_PERMISSIONS: tuple[Permission, ...] = ("fs.read", "fs.write", "fs.delete", "git.write")


class ToolSet:
    """The tools that a session offers: enabled, and within its permissions and what active skills allow."""

    def __init__(
        self,
        registry: "ToolRegistry",
        *,
        enable: Collection[str] = (),
        disable: Collection[str] = (),
        deny: Collection[Permission] = (),
        allowed: Collection[str] | None = None,
    ) -> None:
        """`allowed` are the tools that active skills allow. None allows all."""
        _refuse_misspelled("enable", enable, registry)
        _refuse_misspelled("disable", disable, registry)
        self._registry = registry
        self._enable, self._disable, self._deny, self._allowed = enable, disable, deny, allowed
        self.names = tuple(name for name in registry.names if self._find_reason(name) is None)
        self._offered = frozenset(self.names)

    def restricted_to(self, allowed: Collection[str] | None) -> "ToolSet":
        return self._copy(self._registry, allowed)

    def with_foreign(self, extend: Callable[["ToolRegistry", Callable[[str], bool]], "ToolRegistry"]) -> "ToolSet":
        """A copy over the registry that `extend` makes. It gets this registry, and whether a tool is disabled."""
        return self._copy(extend(self._registry, self._is_disabled), self._allowed)

    def with_custom(self, tool: Tool) -> "ToolSet":
        return self._copy(self._registry.with_custom(tool), self._allowed)

    def _copy(self, registry: "ToolRegistry", allowed: Collection[str] | None) -> "ToolSet":
        return ToolSet(registry, enable=self._enable, disable=self._disable, deny=self._deny, allowed=allowed)

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(tool for name in self.names if (tool := self.get(name)) is not None)

    def get(self, name: str) -> Tool | None:
        """The offered tool of exactly this name."""
        return self._registry.get(name) if name in self._offered else None

    def differing_in_case(self, name: str) -> Tool | None:
        """The only offered tool whose name differs from this one in case alone."""
        same = [own for own in self.names if own.casefold() == name.casefold()]
        return self.get(same[0]) if len(same) == 1 else None

    def get_registered(self, name: str) -> Tool | None:
        """The tool of exactly this name, offered or not. Earlier calls may have used it."""
        return self._registry.get(name)

    @property
    def registered(self) -> tuple[str, ...]:
        return self._registry.names

    def denies(self, permission: Permission) -> bool:
        return permission in self._deny

    def why_off(self, name: str) -> str | None:
        """The reason why a registered tool is not offered, for the person who wrote the settings."""
        reason = self._find_reason(name) if name in self.registered else None
        return f"{name} is off{reason}" if reason else None

    def unmatched(self) -> tuple[str, ...]:
        """Warnings about enabled or disabled names that are unknown here. Another program may bring such a tool."""
        return tuple(
            f"[tools] {setting}: there is no tool {render_value(name)} here, so nothing was {setting}d."
            " handrail tools lists the tools."
            for setting, names in (("enable", self._enable), ("disable", self._disable))
            for name in names
            if not _can_exist(name, self._registry)
        )

    def _find_reason(self, name: str) -> str | None:
        own, name = name, HELPED.get(name, name)
        if self._is_disabled(name):
            return ": [tools] disable names it."
        if denied := self._list_denied(name):
            are = "are" if len(denied) > 1 else "is"
            return f": it needs {' and '.join(denied)}, which {are} denied here ([tools] deny)."
        if self._registry.is_off(name) and name not in self._enable and own not in self._enable:
            return f'; [tools] enable = ["{name}"] offers it.'
        return None if self._allowed is None or name in self._allowed else ": no active skill allows it."

    def _is_disabled(self, name: str) -> bool:
        is_foreign = bool(self._disable) and name.startswith(MCP_PREFIX)
        return name in self._disable or (is_foreign and is_mcp_tool_excluded(self._disable, name))

    def _list_denied(self, name: str) -> list[Permission]:
        tool = self._registry.get(name) if self._deny else None
        return [] if tool is None else [needed for needed in _list_permissions(tool.spec) if needed in self._deny]


def build_tool_set(settings: Settings, helpers: tuple[str, ...] = (), files: tuple[ToolFile, ...] = ()) -> ToolSet:
    """The tools that a session with these settings offers. They describe themselves. Without a session none runs."""
    tools, services = settings.tools, cast("ToolServices", _NoSession(settings))
    registry = ToolRegistry(services, [*load_tool_files(files), *load_configured_tools(settings)], helpers)
    return ToolSet(registry, enable=tools.enable, disable=tools.disable, deny=tools.deny)


def parse_arguments(spec: ToolSpec, arguments: object) -> msgspec.Struct:
    """The typed arguments, or INVALID_ARGUMENT with every problem."""
    if spec.foreign is not None:
        if problems := spec.foreign.problems(arguments):
            raise build_argument_error(spec, problems)
        return ForeignArguments(cast("dict[str, Any]", arguments))
    try:
        return convert(arguments, spec.arguments)
    except CONVERSION_ERRORS as error:
        raise explain_conversion_error(spec, arguments, error) from None


def _list_permissions(spec: ToolSpec) -> tuple[Permission, ...]:
    """The permissions that a tool uses. A command can do anything to files, a server anything that it reaches."""
    if spec.foreign is not None:
        return spec.foreign.reach
    return spec.permissions if "proc.exec" not in spec.permissions else (*spec.permissions, *_COMMAND_PERMISSIONS)


def _refuse_misspelled(setting: str, names: Collection[str], registry: "ToolRegistry") -> None:
    """UsageError for an unknown name that is close to a tool. Tools of servers come and go, so they do not count."""
    for name in names:
        if not _can_exist(name, registry) and (near := find_similar(name.lower(), registry.other_names, 0.75)):
            raise UsageError(f"there is no tool {render_value(name)} ([tools] {setting}); did you mean {near}?")


def _can_exist(name: str, registry: "ToolRegistry") -> bool:
    """Whether there is a tool of this name, or a server may list one."""
    return name in BASE_NAMES or name in registry.names or name.casefold().startswith(MCP_PREFIX)


class ToolRegistry:
    """All tools by name. No tool replaces another. A built-in tool is loaded when it is first used."""

    def __init__(
        self, services: "ToolServices | None", custom: Iterable[Tool] = (), helpers: tuple[str, ...] = ()
    ) -> None:
        """Without services there are no built-in tools. `helpers`: those that a dialect calls besides the tools."""
        self._services = services
        self._tools: dict[str, Tool] = {}
        self._helpers = helpers
        self.names = (*_BUILTIN, *helpers) if services is not None else ()
        """All names, in the order of registration."""
        for tool in custom:
            self.add(tool)
        self.other_names = self.names
        """All names but those of foreign tools."""

    def add(self, tool: Tool) -> None:
        """Registers a custom or foreign tool. UsageError if its name is invalid, reserved or taken."""
        if not isinstance(tool, Tool):  # pyright: ignore[reportUnnecessaryIsInstance]  a function without its decorator
            raise UsageError(f"{tool!r} is not a tool; declare a function with @tool")
        name = tool.spec.name
        if tool.spec.foreign is None:
            tool.spec.check_name()
        if tool.spec.category == "builtin":
            raise UsageError(f"the tool {name!r} has the category builtin, which only the base tools have; use custom")
        if name in self.names:
            raise UsageError(f"a tool named {name!r} is registered already")
        if tool.spec.category == "custom":
            from handrail.runtime.custom_call import guard_hooks

            tool = guard_hooks(tool)
        self._tools[name] = tool
        self.names = (*self.names, name)

    def with_foreign(self, tools: Iterable[Tool]) -> "ToolRegistry":
        """A copy with these foreign tools instead of the present ones."""
        registry = ToolRegistry(self._services, helpers=self._helpers)
        registry.other_names = registry.names = self.other_names
        registry._tools = {name: tool for name, tool in self._tools.items() if name in self.other_names}
        for tool in tools:
            registry.add(tool)
        return registry

    def with_custom(self, tool: Tool) -> "ToolRegistry":
        """A copy with one more custom tool."""
        registry = ToolRegistry(self._services, helpers=self._helpers)
        registry._tools, registry.names = dict(self._tools), self.names
        registry.add(tool)
        registry.other_names = (*self.other_names, tool.spec.name)
        return registry

    def get(self, name: str) -> Tool | None:
        tool = self._tools.get(name)
        if tool is None and self._services is not None and (name in _BUILTIN or name in self._helpers):
            tool = self._tools.setdefault(name, _build_builtin_tool(name, self._services))
        return tool

    def is_off(self, name: str) -> bool:
        """Whether a tool is off until the settings enable it. Answered without loading a built-in tool."""
        return name not in BASE_NAMES and (name in _BUILTIN or not self._tools[name].spec.enabled)


class ToolServices(msgspec.Struct, kw_only=True, dict=True):
    """The parts of a session that built-in tools work with."""

    seen: ReadMarks
    outputs: Outputs
    recorder: "Recorder"
    commands: "CommandEnvironment"
    background: Background
    settings: Settings
    notes: str
    skills: "SkillBook"
    code_folder: Callable[[str], str]
    """Finds the folder of the code index of a root."""
    unattended: bool = False
    lsp: "LanguageServers | None" = None
    check: "ChangeCheck | None" = None
    """What reports the problems that a change causes."""

    @cached_property
    def search(self) -> "SessionSearch":
        """The engine that find and grep share."""
        from handrail.tools.search import SessionSearch

        return SessionSearch(self.settings.search.ignore, self.settings.search.engine)

    @property
    def memories(self) -> "Memories":
        from handrail.store.memories import Memories

        return Memories(self.notes)


class _NoSession:
    """The services of a tool that only describes itself. Each of them raises ToolError when it is used."""

    unattended = False
    check = None

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_: object, **__: object) -> Any:
        raise ToolError("UNAVAILABLE", "There is no session. Nothing was run.")


_Build = Callable[..., Tool]


def _build_file_tool(build: _Build, services: ToolServices) -> Tool:
    tool = build(services.seen, services.recorder)
    if services.check is None:
        return tool
    from handrail.tools.lsp.diagnostics import add_new_problems

    return add_new_problems(cast("FileTool", tool), services.check, services.recorder)


def _build_lsp_lint_tool(build: _Build, services: ToolServices) -> Tool:
    tool = build(services.commands, services.background, lambda: services.recorder)
    if services.lsp is None:
        return tool
    from handrail.tools.lsp.lint import add_diagnostics

    return add_diagnostics(tool, services.lsp)


_BUILTIN: dict[str, tuple[str, Callable[[_Build, ToolServices], Tool]]] = {
    "read": ("read", lambda build, of: build(of.seen, of.outputs, images=of.settings.read.images)),
    "write": ("write", _build_file_tool),
    "edit": ("edit", _build_file_tool),
    "find": ("find", lambda build, of: build(of.search)),
    "grep": ("grep", lambda build, of: build(of.search, of.outputs)),
    "ls": ("ls", lambda build, of: build(of.settings.search.ignore)),
    "exec": ("exec.exec_tool", lambda build, of: build(of.commands, of.background, lambda: of.recorder)),
    "process": ("process", lambda build, of: build(of.background)),
    "apply_patch": ("apply_patch", _build_file_tool),
    "multi_edit": ("multi_edit", _build_file_tool),
    "delete": ("delete", _build_file_tool),
    "codebase_search": (
        "codebase_search",
        lambda build, of: build(of.search, of.code_folder, of.settings.search.embeddings),
    ),
    "code_outline": ("code.structure", lambda build, _: build()),
    "code_analyze": ("code.structure", lambda build, _: build()),
    "code_symbols": ("code.structure", lambda build, _: build()),
    "code_format": ("code.programs", lambda build, of: build(of.commands, of.background, lambda: of.recorder)),
    "code_lint": ("code.programs", lambda build, of: build(of.commands, of.background, lambda: of.recorder)),
    "display": ("companions.display", lambda build, _: build()),
    "question": ("companions.question", lambda build, of: build(unattended=of.unattended)),
    "todo": ("companions.todo", lambda build, _: build()),
    "memory": ("companions.memory", lambda build, of: build(of.memories)),
    "skill_list": ("companions.skills", lambda build, of: build(of.skills.entries)),
    "skill_control": ("companions.skills", lambda build, of: build(of.skills)),
    "lsp_definition": ("lsp.lookup", lambda build, of: build(of.lsp)),
    "lsp_references": ("lsp.lookup", lambda build, of: build(of.lsp)),
    "lsp_hover": ("lsp.lookup", lambda build, of: build(of.lsp)),
    "lsp_diagnostics": ("lsp.diagnostics", lambda build, of: build(of.lsp)),
    "lsp_symbols": ("lsp.lookup", lambda build, of: build(of.lsp)),
    "lsp_rename": ("lsp.edits", lambda build, of: build(of.seen, of.recorder, of.lsp)),
    "lsp_format": ("lsp.edits", lambda build, of: build(of.seen, of.recorder, of.lsp)),
}
"""The built-in tools in their order: the module of each, and what its factory gets. Base tools are on by default."""
HELPED = {"append": "write", "search_text": "grep", "lsp_lint": "code_lint"}
"""The tool that each helper of the dialects belongs to. A helper is offered if that tool is."""
_HELPERS: dict[str, tuple[str, Callable[[_Build, ToolServices], Tool]]] = {
    "append": ("append", _build_file_tool),
    "search_text": ("search_text", lambda build, of: build(of.search, of.outputs)),
    "lsp_lint": ("code.programs", _build_lsp_lint_tool),
}
"""Tools for features of other systems that no canonical parameter has. Only a session with a dialect has them."""


def _build_builtin_tool(name: str, services: ToolServices) -> Tool:
    module, build = _BUILTIN.get(name) or _HELPERS[name]
    return build(getattr(import_module(f"handrail.tools.{module}"), f"build_{name}_tool"), services)


def load_configured_tools(settings: Settings) -> list[Tool]:
    tools = [tool for folder in settings.tools.folders for tool in load_folder_tools(folder)]
    return tools + load_installed_tools() if settings.tools.installed else tools


def load_installed_tools() -> list[Tool]:
    """The tools of installed packages: entry points in the group `handrail.tools`."""
    from importlib.metadata import entry_points

    tools: list[Tool] = []
    for entry in entry_points(group=_ENTRY_POINTS):
        title = f"the entry point {entry.name!r}"
        tools += _collect_tools(_load(entry.load, title), title)
    return tools


def load_folder_tools(folder: str) -> list[Tool]:
    """The tools of all Python files in a folder. This runs the files: name only folders that you trust."""
    from handrail.settings.project_tools import list_tool_names

    files: list[ToolFile] = []
    try:
        for name in list_tool_names(folder):
            path = os.path.join(folder, name)
            with open(path, "rb") as stream:
                files.append(ToolFile(path, stream.read()))
    except OSError as error:
        raise UsageError(f"the tool folder {folder!r} cannot be read: {error}") from error
    return load_tool_files(files)


def load_tool_files(files: Iterable[ToolFile]) -> list[Tool]:
    """The tools of these files. Runs the given bytes, not what the files or compiled copies have by now."""
    return [tool for file in files for tool in _collect_tools(_load_file(file), file.path)]


def _load_file(file: ToolFile) -> ModuleType:
    # Two folders may have a file of the same name.
    digest = sha256(os.path.abspath(file.path).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    name = f"handrail_tools_{digest}_{os.path.basename(file.path).removesuffix('.py')}"
    sys.modules[name] = module = ModuleType(name)  # dataclasses and pickle look it up there
    module.__file__ = file.path

    def run() -> None:
        exec(compile(file.source, file.path, "exec", dont_inherit=True), vars(module))  # noqa: S102

    try:
        _load(run, f"the tool file {file.path!r}")
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _load(load: Callable[[], Loaded], title: str) -> Loaded:
    """What third-party code loads. UsageError if it raises anything, or does not end."""
    from handrail.runtime.tool_thread import AbandonedError, run_in_thread

    try:
        loaded = run_in_thread(lambda _: load(), lambda: False, grace=0, seconds=_LOAD_SECONDS)
    except AbandonedError:
        raise UsageError(f"{title} does not load within {_LOAD_SECONDS:g} s") from None
    if (error := loaded.exception()) is not None:
        raise UsageError(f"{title} does not load: {type(error).__name__}: {error}") from error
    return loaded.result()


def _collect_tools(source: object, title: str) -> list[Tool]:
    if isinstance(source, Tool):
        return [source]
    if isinstance(source, ModuleType):
        tools = {id(value): value for value in vars(source).values() if isinstance(value, Tool)}
        return list(tools.values())
    raise UsageError(f"{title} is neither a tool nor a module with tools")
