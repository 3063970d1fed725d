"""Every tool that was registered, and which of them a session offers."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from handrail.policy.config import MCP_PREFIX, is_mcp_tool_excluded
from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import Permission
from handrail.protocol.text import render_value
from handrail.protocol.tool_spec import BASE_NAMES, ToolSpec
from handrail.tools.contract import Tool

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
    from difflib import get_close_matches  # noqa: PLC0415  only for a mistake

    near = get_close_matches(name[:128].lower(), list(names), n=1, cutoff=0.75)
    return near[0] if near else None
