"""The ways to run an attack: by handrail's exec at some tier, or as a bare process that nothing confines."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
from tests.escape.case import Trust
from tests.escape.corpus.exhausting import FILE_MEGABYTES, MEGABYTES, PROCESSES

from handrail import Handrail
from handrail.protocol.permissions import PermissionRequest
from handrail.settings import Settings
from handrail.settings.model import Limits, Sandbox

BARE = -1
_CLEAN = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8"}
_SECONDS = 10
_REFUSED = {"POLICY_DENIED", "PERMISSION_DENIED"}
_ENDED = {"TIMEOUT", "LIMIT_EXCEEDED"}


class Answer(msgspec.Struct, frozen=True):
    """What the one who runs a command gets to know."""

    ran: bool
    text: str


class ByHandrail:
    """Runs commands by exec, each workspace and trust with a session of its own."""

    def __init__(self, place: Path, tier: int) -> None:
        self._place = place
        self._tier = tier
        self._rails: dict[tuple[str, Trust], Handrail] = {}
        self._asked = 0

    def run(self, command: str, workspace: str, cwd: str, trust: Trust) -> Answer:
        rail = self._rails.get((workspace, trust)) or self._open(workspace, trust)
        before = self._asked
        result = rail.call("exec", {"command": command, "cwd": cwd, "timeoutMs": _SECONDS * 1000})
        if trust == "unasked" and self._tier > 0:
            assert self._asked == before, f"{command} was to run unasked, and somebody was asked"
        code = result.error.code if result.error else None
        assert code in {None, *_REFUSED, *_ENDED}, result.error
        if code in _REFUSED:
            return Answer(ran=False, text=result.content)
        assert result.meta.sandbox is not None
        assert result.meta.sandbox.tier == self._tier, result.meta.sandbox
        printed = result.data.output if result.data else ""
        return Answer(ran=True, text=f"{printed}\n{result.content}")

    def available(self) -> bool:
        """Whether commands are confined by this very tier here."""
        result = self._open("workspace", "approved").call("exec", {"command": "true"})
        return result.meta.sandbox is not None and result.meta.sandbox.tier == self._tier

    def close(self) -> None:
        for rail in self._rails.values():
            rail.close()

    def _open(self, workspace: str, trust: Trust) -> Handrail:
        place = self._place
        shown = (str(place / "shown"), str(place / "shown-sockets"))
        settings = Settings(
            sandbox=Sandbox(tier=self._tier, toolchains=shown),
            limits=Limits(
                exec=f"{_SECONDS}s",
                memory=f"{MEGABYTES} MB",
                processes=PROCESSES,
                file_size=f"{FILE_MEGABYTES} MB",
            ),
        )
        rail = Handrail(
            place / workspace,
            mode="full" if trust == "unasked" else "ask",
            state_dir=place / "state",
            settings=settings,
            on_permission=self._answer if trust != "proven" or self._tier == 0 else self._no,
        )
        self._rails[workspace, trust] = rail
        return rail

    def _answer(self, request: PermissionRequest) -> str:
        self._asked += 1
        return "once"

    def _no(self, request: PermissionRequest) -> str:
        self._asked += 1
        return "deny"


def run_bare(command: str, folder: Path, home: str, *, careless: bool) -> Answer:
    """Runs a command with nothing around it; a careless runtime passes on all that it has."""
    environment: Mapping[str, str] = os.environ if careless else _CLEAN | {"HOME": home}
    with subprocess.Popen(
        ["/bin/bash", "-c", command],
        cwd=folder,
        env=environment,
        close_fds=not careless,
        stdin=subprocess.PIPE if careless else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
    ) as process:
        assert process.stdout is not None
        if process.stdin is not None:
            process.stdin.close()
        # Not to the end of the pipe: who outlives the command holds it open.
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        os.set_blocking(process.stdout.fileno(), False)
        output = process.stdout.read() or b""
    return Answer(ran=True, text=output.decode("utf-8", "replace"))
