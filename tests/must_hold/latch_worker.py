"""Processes that park, answer and resume batches, forked from one that has everything loaded, so that a kill is cheap.

Arguments: workspace, state folder, file of effects, descriptor of a socket. Each descriptor that comes in through the
socket belongs to a new worker, which says its process id there and then answers one line of JSON with another.
"""

import json
import os
import signal
import socket
import sys
from datetime import UTC, datetime
from typing import Any

from handrail import Context, Done, Handrail, Parked, ToolCall, UsageError, tool
from handrail.protocol.events import Event, get_event_kind
from handrail.settings import Settings

WORKSPACE, STATE, EFFECTS = sys.argv[1:4]


def have_effect(context: Context) -> str:
    """One line for each time that the call is really run."""
    die_now("before")
    descriptor = os.open(EFFECTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{context.tool_call_id}\n".encode())
    os.close(descriptor)
    die_now("after")
    return "done"


DOOM: dict[str, int] = {}
"""How often a place is passed before the process is killed there."""


def die_now(place: str) -> None:
    """Kills the process where it is doomed to die."""
    if place in DOOM:
        DOOM[place] -= 1
        if DOOM[place] < 0:
            os.kill(os.getpid(), signal.SIGKILL)


@tool(read_only=True, auto_execute=True)
def allow(context: Context) -> str:
    """Runs unasked."""
    return have_effect(context)


@tool
def confirm(context: Context) -> str:
    """Asks first."""
    return have_effect(context)


class Worker:
    """What one process does for one session at a time."""

    def __init__(self) -> None:
        self.rail: Handrail | None = None

    def do(self, order: dict[str, Any]) -> Any:
        """What an order asks for; `die` says where, and at the how manieth time, the process is killed meanwhile."""
        if order["die"] is not None:
            DOOM.update([order["die"]])
            sys.setprofile(passing if "anywhere" in DOOM else None)
        try:
            return getattr(self, order["do"])(*order["with"])
        finally:
            sys.setprofile(None)
            DOOM.clear()

    def open(self, session: str) -> None:
        if self.rail is not None:
            self.rail.close()
        options: dict[str, Any] = {"mode": "ask", "settings": Settings(), "tools": [allow, confirm]}
        self.rail = Handrail(WORKSPACE, session=session, state_dir=STATE, **options)

    def batch(self, calls: list[tuple[str, str]]) -> Any:
        return told(self.opened.batch([call_of(*one) for one in calls]))

    def call(self, call_id: str, kind: str) -> None:
        call = call_of(call_id, kind)
        self.opened.call(call.name, call.args, tool_call_id=call_id)

    def answer(self, request: str, kind: Any) -> Any:
        try:
            return told(self.opened.answer(request, kind))
        except UsageError:
            return "too late"

    def answer_shown(self, request: str, kind: Any) -> Any:
        """Answers the request as it is shown now, which another process may be about to change."""
        found = [one for one in self.opened.waiting() if one.id == request]
        try:
            return told(self.opened.answer(found[0], kind)) if found else "too late"
        except UsageError:
            return "too late"

    def retry(self, request: str) -> Any:
        try:
            return self.opened.retry(request).revision
        except UsageError:
            return "too late"

    def resume(self) -> Any:
        return told(self.opened.resume())

    def waiting(self) -> list[str]:
        return [request.id for request in self.opened.waiting()]

    def events(self) -> Any:
        return [event_of(event) for event in self.opened.events() if isinstance(event, Event)]

    def granted(self) -> list[tuple[str, str]]:
        return [(granted.id, granted.command) for granted in self.opened.grants()]

    def revoke(self, grant_id: str) -> None:
        self.opened.revoke(grant_id)

    @property
    def opened(self) -> Handrail:
        assert self.rail is not None
        return self.rail


def passing(_frame: Any, what: str, _argument: Any) -> None:
    """Anywhere is every call of a function written in C, so everything that reaches the disk or another process. Unlike
    a time, that is the same moment on a slow machine."""
    if what == "c_call":
        die_now("anywhere")


def call_of(call_id: str, kind: str) -> ToolCall:
    """A call that policy allows, asks about or denies; or a command, which asks too."""
    name, args = {
        "deny": ("write", {"path": "../outside", "content": call_id}),
        "command": ("exec", {"command": f"mkdir {call_id}"}),
        "append": ("exec", {"command": f"echo {call_id} >> log-{call_id.partition('.')[0]}"}),
    }.get(kind, (kind, {}))
    return ToolCall(tool_call_id=call_id, name=name, args=args, trace_id=call_id, timestamp=datetime.now(UTC))


def told(outcome: Done | Parked | None) -> Any:
    if outcome is None:
        return None
    if isinstance(outcome, Parked):
        return {"parked": [(request.id, request.tool_call_id) for request in outcome.requests]}
    return {"done": {one.tool_call_id: one.error.code if one.error else "ok" for one in outcome.results}}


def event_of(event: Any) -> Any:
    result, answer = getattr(event, "result", None), getattr(event, "answer", None)
    code = (result.error.code if result.error else "ok") if result else answer.kind if answer else None
    return get_event_kind(event), getattr(event, "tool_call_id", None), code


def serve(descriptor: int) -> None:
    """Does what it is told until nobody is there to tell it anything."""
    worker = Worker()
    with socket.socket(fileno=descriptor) as connection, connection.makefile("rw") as lines:
        lines.write(f"{os.getpid()}\n")
        lines.flush()
        for line in lines:
            lines.write(json.dumps(worker.do(json.loads(line))) + "\n")
            lines.flush()
    if worker.rail is not None:
        worker.rail.close()


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[4])) as control:
        while True:
            _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
            if not descriptors:
                return
            if os.fork() == 0:
                control.close()
                serve(descriptors[0])
                os._exit(0)
            os.close(descriptors[0])


if __name__ == "__main__":
    main()
