"""Watches unanswered calls for an answer from elsewhere, such as `handrail approvals`."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from html import escape
from typing import Protocol

from handrail.mcp.calls import ClientCalls, UnansweredCall
from handrail.protocol.text import to_one_line, truncate
from handrail.terminal.request_text import describe_subject

POLL_SECONDS = 0.1
_REMIND_SECONDS = 5.0
_FULL_POLLS = 10
"""Every tenth poll also finds a call whose runner was killed. That leaves no trace in the journal."""
_MAX_SUBJECT_CHARS = 200


class ApprovalWatch:
    """One unanswered call."""

    def __init__(self, calls: ClientCalls, call: UnansweredCall) -> None:
        self.call = call
        self._calls = calls
        self._reminder = f"waits for your answer: {calls.describe_answer_commands(call)}"
        self._version = -1
        self._polls = 0
        self._next_reminder = 0.0

    def has_changed(self) -> bool:
        """Mostly this only checks whether another process wrote to the journal."""
        self._polls += 1
        version = self._calls.deferred.version()
        if version == self._version and self._polls % _FULL_POLLS:
            return False
        self._version = version
        return self._calls.has_changed(self.call)

    def remind(self, send: Callable[[str], None]) -> None:
        """Sends the answer commands every few seconds."""
        now = time.monotonic()
        if now >= self._next_reminder:
            self._next_reminder = now + _REMIND_SECONDS
            send(self._reminder)

    def notify_desktop(self) -> bool:
        """Shows the call on the person's desktop. For a client that cannot show forms."""
        return notify_desktop(self._calls.rail.notify_person, self.call)


def notify_desktop(notify: Callable[[str, str], bool], call: UnansweredCall) -> bool:
    # Desktops interpret markup, and a command must not imitate our text.
    return notify("handrail waits for your answer", f"{escape(_describe_call(call))}\nhandrail approvals")


def _describe_call(call: UnansweredCall) -> str:
    if call.requests:
        request = call.requests[0]
        tool = f"{to_one_line(request.tool_name)}: " if request.fingerprint is None else ""
        text = f"{tool}{describe_subject(request)}"
    elif call.questions:
        text = to_one_line(call.questions[0].question)
    else:
        text = to_one_line(call.interim.name)
    return truncate(text, _MAX_SUBJECT_CHARS)


class PollTarget(Protocol):
    def poll(self) -> bool:
        """Must be quick. False ends the polling."""
        ...


class ApprovalPoller:
    """Polls all targets in one thread. The thread ends with the last target."""

    def __init__(self) -> None:
        self._targets: list[PollTarget] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, target: PollTarget) -> None:
        with self._lock:
            self._targets.append(target)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="handrail-mcp-waiting", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            with self._lock:
                targets = tuple(self._targets)
                if not targets:
                    self._thread = None
                    return
            ended = {id(target) for target in targets if not _poll(target)}
            with self._lock:
                self._targets = [target for target in self._targets if id(target) not in ended]
            pause.wait(POLL_SECONDS)


def _poll(target: PollTarget) -> bool:
    with suppress(Exception):  # the journal was closed: poll the other targets
        return target.poll()
    return False


POLLER = ApprovalPoller()
"""The poller of this process."""
