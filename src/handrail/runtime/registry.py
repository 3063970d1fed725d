"""Every tool that was registered, and which of them a session offers."""

import re
from collections.abc import Collection, Iterable

from handrail.protocol.error import UsageError
from handrail.protocol.permission import Permission
from handrail.protocol.tool import BASE_NAMES, ToolSpec
from handrail.protocol.wording import shown
from handrail.tools.contract import Tool

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")

_OF_COMMANDS: tuple[Permission, ...] = ("fs.read", "fs.write", "fs.delete", "git.write")


class Registry:
    """Tools by name. No tool replaces another, least of all a base tool."""

    def __init__(self, base: Iterable[Tool] = (), others: Iterable[Tool] = ()) -> None:
        self._tools = {tool.spec.name: tool for tool in base}
        for tool in others:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        """Registers a tool that is not of the base layer; UsageError when its name is taken, reserved or none."""
        if not isinstance(tool, Tool):  # pyright: ignore[reportUnnecessaryIsInstance]  a function without its decorator
            raise UsageError(f"{tool!r} is no tool; declare a function with @tool")
        name = tool.spec.name
        if not _NAME.fullmatch(name):
            raise UsageError(f"a tool's name is made of letters, digits, _, - and ., at most 128: {name[:140]!r}")
        if name.casefold() in BASE_NAMES:
            raise UsageError(f"the tool {name!r} would shadow a base tool; give it another name")
        if tool.spec.category == "builtin":
            raise UsageError(f"the tool {name!r} has the category builtin, which only the base layer has; use custom")
        if name in self._tools:
            raise UsageError(f"a tool named {name!r} is registered already")
        self._tools[name] = tool

    def get(self, name: str) -> Tool | None:
        """The tool of exactly this name."""
        return self._tools.get(name)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools in the order they were registered."""
        return tuple(self._tools.values())


class Offer:
    """What a session offers: registered, enabled, within the agent's permissions and what active skills allow."""

    def __init__(
        self,
        registry: Registry,
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
        self._offered = {tool.spec.name: tool for tool in registry.tools if self._reason(tool) is None}
        self.names = tuple(self._offered)

    def narrowed(self, allowed: Collection[str] | None) -> "Offer":
        """The same, with only what active skills allow; all of it where they do not say."""
        given = {"enable": self._enable, "disable": self._disable}
        return Offer(self._registry, **given, deny=self._deny, allowed=allowed)

    def get(self, name: str) -> Tool | None:
        """The tool of exactly this name, if it is offered."""
        return self._offered.get(name)

    def known(self, name: str) -> Tool | None:
        """The tool of exactly this name, offered or not: for calls of before, when it may have been."""
        return self._registry.get(name)

    @property
    def registered(self) -> tuple[str, ...]:
        """The names of all tools, offered or not."""
        return tuple(tool.spec.name for tool in self._registry.tools)

    def denies(self, permission: Permission) -> bool:
        """Whether no tool is offered that needs it."""
        return permission in self._deny

    def why_off(self, name: str) -> str | None:
        """Why a registered tool is not offered, for the person whose settings these are; None where it is, or is not
        registered."""
        tool = self._registry.get(name)
        reason = self._reason(tool) if tool else None
        return f"{name} is off{reason}" if reason else None

    def _reason(self, tool: Tool) -> str | None:
        name = tool.spec.name
        if name in self._disable:
            return ": [tools] disable names it."
        if denied := [permission for permission in _used_by(tool.spec) if permission in self._deny]:
            are = "are" if len(denied) > 1 else "is"
            return f": it needs {' and '.join(denied)}, which {are} denied here ([tools] deny)."
        if not tool.spec.enabled and name not in self._enable:
            return f'; [tools] enable = ["{name}"] offers it.'
        return None if self._allowed is None or name in self._allowed else ": no active skill allows it."

    def differing_in_case(self, name: str) -> Tool | None:
        """The only tool whose name differs from this one in case alone."""
        same = [tool for own, tool in self._offered.items() if own.casefold() == name.casefold()]
        return same[0] if len(same) == 1 else None

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The offered tools, in order."""
        return tuple(self._offered.values())


def _used_by(spec: ToolSpec) -> tuple[Permission, ...]:
    """What a tool needs; a command can do everything that can be done to files."""
    return spec.permissions if "proc.exec" not in spec.permissions else (*spec.permissions, *_OF_COMMANDS)


def _refuse_unknown(setting: str, names: Collection[str], registry: Registry) -> None:
    """A misspelt name would be a tool that is missing, or one that is still there, without a word.

    A name that is like none here is left alone: a user's settings may speak of tools that only some programs bring.
    """
    for name in names:
        if name not in BASE_NAMES and registry.get(name) is None and (near := _nearest(name, registry)):
            raise UsageError(f"there is no tool {shown(name)} ([tools] {setting}); did you mean {near}?")


def _nearest(name: str, registry: Registry) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415  only for a mistake

    near = get_close_matches(name[:128].lower(), [tool.spec.name for tool in registry.tools], n=1, cutoff=0.75)
    return near[0] if near else None
