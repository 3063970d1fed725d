"""Temporary sessions with assertions, for tests of tools, agents or policies.

with TemporarySession({"a.txt": "old"}, approve="once") as session:
    session.run(call("write", path="a.txt", content="new"), "Done.")
    session.assert_called("write", path="a.txt")
    session.assert_asked("write")
    session.assert_changed({"a.txt": "new"})
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import EllipsisType
from typing import Any, NamedTuple, Self, cast

from handrail.agent.loop import Agent
from handrail.agent.turn import Turn
from handrail.api import Handrail
from handrail.models.base import ModelError, ModelRequest, TokenUsage
from handrail.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, ScriptedStep, call
from handrail.protocol.decisions import Mode
from handrail.protocol.events import ToolCallEnd, ToolCallError, ToolCallStart
from handrail.protocol.permissions import Answer, AnswerKind, PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.protocol.text import render_value
from handrail.settings import Settings
from handrail.tools.tool import Tool

__all__ = [
    "Approve",
    "ModelError",
    "ModelRequest",
    "ScriptedCall",
    "ScriptedModel",
    "ScriptedReply",
    "ScriptedStep",
    "SessionCall",
    "TemporarySession",
    "TokenUsage",
    "call",
]

OneAnswer = Answer | AnswerKind | None
Approve = OneAnswer | Sequence[OneAnswer] | Callable[[PermissionRequest], OneAnswer]
"""One answer to every request, an answer for each in order, or a function. None leaves a request open."""
Contents = Mapping[str, str | bytes | EllipsisType | None]
_REFUSALS = {"POLICY_DENIED", "PERMISSION_DENIED"}


class SessionCall(NamedTuple):
    """A call as the journal has it."""

    name: str
    args: Any
    result: ToolResult[Any] | None
    """None while the call waits for approval, or if it was killed."""

    def __str__(self) -> str:
        outcome = "waits" if self.result is None else self.result.error.code if self.result.error else "ok"
        return f"{_format_call(self.name, self.args)}: {outcome}"


class TemporarySession:
    """A session in a workspace of its own, with these files. It uses no settings of the person, and never asks one.

    `approve` answers permission requests. `requests` has them all. `options` go to `Handrail`.
    """

    def __init__(
        self,
        files: Mapping[str, str | bytes] | None = None,
        *,
        mode: Mode = "ask",
        approve: Approve = None,
        tools: Iterable[Tool] = (),
        settings: Settings | None = None,
        folder: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        """`folder`: an empty folder for workspace and state, which stays. Without it both are deleted at the end."""
        self._temporary = None if folder else TemporaryDirectory(prefix="handrail-", ignore_cleanup_errors=True)
        home = Path(self._temporary.name if self._temporary else folder or "")
        self.workspace = home / "workspace"
        self.workspace.mkdir(parents=True)
        for name, content in (files or {}).items():
            path = self.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.requests: list[PermissionRequest] = []
        """The permission requests, in order."""
        self._approve = approve
        self._script: list[ScriptedStep] = []
        self._before = self._read_files()
        chosen: dict[str, Any] = {"state_dir": home / "state", "settings": settings or Settings(), **options}
        self.rail = Handrail(self.workspace, mode=mode, tools=tools, on_permission=self._answer, **chosen)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.rail.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    # At work

    def call(self, name: str, /, **args: Any) -> ToolResult[Any]:
        """Calls a tool."""
        return self.rail.call(name, args)

    def run(self, *steps: ScriptedStep, prompt: str = "Go on.") -> Turn:
        """Runs a turn of a model that answers with these steps. In an event loop, use `Agent` instead."""
        self._script += steps  # the model counts its replies in the transcript
        return asyncio.run(Agent(self.rail, ScriptedModel(self._script)).run(prompt))

    @property
    def calls(self) -> list[SessionCall]:
        """All calls so far, in order."""
        events = list(self.rail.events())
        results = {one.tool_call_id: one.result for one in events if isinstance(one, ToolCallEnd | ToolCallError)}
        started = [one for one in events if isinstance(one, ToolCallStart)]
        return [SessionCall(one.tool_call_name, one.args, results.get(one.tool_call_id)) for one in started]

    # Assertions

    def assert_called(self, name: str, /, *, times: int | None = None, **args: Any) -> SessionCall:
        """A call of this tool with at least these arguments, the last one. `times`: exactly so many."""
        found = self._find_calls(name, args)
        if not found if times is None else len(found) != times:
            often = "was not called" if not found else f"was called {len(found)} times, not {times}"
            raise _build_error(f"{_format_call(name, args)} {often}", "call", self.calls)
        return found[-1] if found else SessionCall(name, args, None)

    def assert_not_called(self, name: str, /, **args: Any) -> None:
        self.assert_called(name, times=0, **args)

    def assert_refused(self, name: str, /, **args: Any) -> SessionCall:
        """A call that the policy or a person refused."""
        for one in reversed(self._find_calls(name, args)):
            if one.result is not None and one.result.error is not None and one.result.error.code in _REFUSALS:
                return one
        raise _build_error(f"{_format_call(name, args)} was not refused", "call", self.calls)

    def assert_asked(self, name: str, /, **fields: Any) -> PermissionRequest:
        """A permission request about this tool whose fields have these values, such as `command`. The last one."""
        for one in reversed(self.requests):
            if one.called == name and all(getattr(one, key) == value for key, value in fields.items()):
                return one
        wanted = _format_call(name, fields)
        raise _build_error(f"nothing asked for approval of {wanted}", "request", map(_format_request, self.requests))

    def assert_not_asked(self) -> None:
        """No call needed approval."""
        if self.requests:
            raise _build_error("approval was needed", "request", map(_format_request, self.requests))

    def assert_changed(self, contents: Contents) -> None:
        """Exactly these files changed since the session was opened, whoever changed them.

        Each has its new content, None if it was deleted, or `...` for any content.
        """
        now = self._read_files()
        changed = {
            name: now.get(name) for name in now.keys() | self._before.keys() if now.get(name) != self._before.get(name)
        }
        wanted = {name: value.encode() if isinstance(value, str) else value for name, value in contents.items()}
        lines = [_describe_difference(name, wanted, changed) for name in sorted(changed.keys() | wanted.keys())]
        if problems := [line for line in lines if line]:
            raise AssertionError("\n  ".join(["the changes differ:", *problems]))

    def _read_files(self) -> dict[str, bytes]:
        files = (path for path in self.workspace.rglob("*") if path.is_file())
        return {str(path.relative_to(self.workspace)): path.read_bytes() for path in files}

    def _answer(self, request: PermissionRequest) -> OneAnswer:
        self.requests.append(request)
        approve, number = self._approve, len(self.requests)
        if callable(approve):
            return approve(request)
        if approve is None or isinstance(approve, Answer | str):
            return cast("OneAnswer", approve)
        if number > len(approve):
            raise AssertionError(
                f"`approve` has {len(approve)} answers, and this is request {number}: {_format_request(request)}"
            )
        return approve[number - 1]

    def _find_calls(self, name: str, args: Mapping[str, Any]) -> list[SessionCall]:
        named = (one for one in self.calls if one.name == name and isinstance(one.args, dict))
        return [one for one in named if args.items() <= one.args.items()]


def _build_error(text: str, noun: str, found: Iterable[object]) -> AssertionError:
    """The error, which lists everything of this kind that there was."""
    lines = [f"  {number}. {one}" for number, one in enumerate(found, start=1)]
    listed = "\n".join([f"{noun.capitalize()}s:", *lines]) if lines else f"There was no {noun}."
    return AssertionError(f"{text}. {listed}")


def _format_call(name: str, args: object) -> str:
    if not isinstance(args, Mapping):
        return f"{name}({render_value(args)})"
    given = cast("Mapping[str, Any]", args)
    return f"{name}({', '.join(f'{key}={render_value(value)}' for key, value in given.items())})"


def _format_request(request: PermissionRequest) -> str:
    return f"{request.called}: {request.description} ({request.reason})"


def _describe_difference(
    name: str, wanted: Mapping[str, bytes | EllipsisType | None], changed: Mapping[str, bytes | None]
) -> str:
    """What is wrong with a file. Empty if nothing is."""
    if name not in wanted:
        return f"{name} was {'deleted' if changed[name] is None else 'changed'} too"
    if name not in changed:
        return f"{name} was not changed"
    expected, content = wanted[name], changed[name]
    if expected == content or (expected is ... and content is not None):
        return ""
    if content is None or expected is None:
        return f"{name} was {'deleted' if content is None else 'not deleted'}"
    return f"{name} has {render_value(content.decode(errors='replace'))}, not {_render(expected)}"


def _render(expected: bytes | EllipsisType) -> str:
    return "any content" if isinstance(expected, EllipsisType) else render_value(expected.decode(errors="replace"))
