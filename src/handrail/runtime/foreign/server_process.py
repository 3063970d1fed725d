"""Starts the programs that other servers are, each in a sandbox of its own, and hands over their pipes."""

import os
import shlex
import shutil
import threading
from collections.abc import Mapping
from contextlib import ExitStack

import msgspec

from handrail.process.output import clean_output
from handrail.process.stdio_process import StdioProcess
from handrail.protocol.errors import ToolError
from handrail.sandbox.profile import SandboxProfile
from handrail.sandbox.proxy.handover import build_socket_folder
from handrail.sandbox.proxy.proxy import Attempt, Proxy
from handrail.settings import Settings
from handrail.tools.exec.environment import CommandEnvironment
from handrail.tools.exec.network import describe_attempt
from handrail.workspace.facts import list_tracked
from handrail.workspace.roots import Root, check_roots
from handrail.workspace.sensitive_paths import list_read_only_paths

_MAX_KEPT_ATTEMPTS = 1_000
"""Attempts to reach a host that are kept until somebody asks; of those after them, none is told by itself."""
_NOT_THERE = 127
_NOT_RUNNABLE = 126
_OVER: Mapping[str, str] = {
    "memory": "it used more memory than limits.memory allows, and was ended",
    "processes": "it had more processes than limits.processes allows, and was ended",
}


class ServerProgramSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be started, and what is open to it."""

    words: tuple[str, ...]
    cwd: str = "."
    variables: tuple[tuple[str, str], ...] = ()
    network: tuple[str, ...] = ()
    writable: bool = False


class ServerProgram:
    """One of them while it runs. `input` and `output` are descriptors that do not block; it ends with this process."""

    def __init__(
        self, attached: StdioProcess, program: str, attempts: "Attempts", held: ExitStack, unseen: str = ""
    ) -> None:
        self._attached = attached
        self._program = program
        self._unseen = unseen
        self._held = held
        self.attempts = attempts

    @property
    def input(self) -> int:
        """What is written here, it reads."""
        return self._attached.input

    @property
    def output(self) -> int:
        """What it writes is read here."""
        return self._attached.output

    @property
    def tier(self) -> int:
        """The sandbox that it runs in."""
        return self._attached.tier

    @property
    def stderr_tail(self) -> str:
        """The last of what it said on stderr, as text for people."""
        return clean_output(self._attached.stderr_tail).strip()

    @property
    def how_it_ended(self) -> str | None:
        """Why it is over, in words; None while it runs, and where it was ended from here."""
        ending, code = self._attached.ending, self._attached.exit_code
        if ending is None or ending == "cancelled":
            return None
        if ending == "failed":
            return "its sandbox could not be made (handrail doctor says more)"
        if ending in _OVER:
            return _OVER[ending]
        if code == _NOT_THERE:
            return self._not_found()
        how = f"{self._program} cannot be run" if code == _NOT_RUNNABLE else f"it ended with exit code {code}"
        return how + self._outside()

    def _not_found(self) -> str:
        if " " in self._program and not self._unseen:
            return f"there is no {self._program}: command is the program alone; its words are args"
        has = "the system's programs and the usual toolchains"
        return f"{self._program} was not found, or a program that it needs: its sandbox has {has}{self._outside()}"

    def _outside(self) -> str:
        """What it was to run and could not see, with what shows it."""
        if not self._unseen:
            return ""
        folder = os.path.dirname(self._unseen)
        return f'; {self._unseen} is not in its sandbox; sandbox.toolchains = ["{folder}"] shows it'

    @property
    def never_ran(self) -> bool:
        """Whether it ended before it was what it should be: it would again."""
        return self._attached.ending == "failed" or self._attached.exit_code in {_NOT_THERE, _NOT_RUNNABLE}

    def end(self) -> None:
        """Ends it, with everything it started; its pipes are closed. Can be repeated."""
        self._attached.end()
        self._held.close()


class Attempts:
    """What a program tried to reach, kept until it is taken. Any thread may add."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[Attempt] = []

    def add(self, attempt: Attempt) -> None:
        """One more."""
        with self._lock:
            if len(self._kept) < _MAX_KEPT_ATTEMPTS:
                self._kept.append(attempt)

    def take(self) -> tuple[tuple[str, int, bool, str], ...]:
        """Those that nobody took before: host, port, whether it was let through, and why."""
        with self._lock:
            kept, self._kept = self._kept, []
        return tuple((one.host, one.port, one.allowed, one.reason or "the server's settings list it") for one in kept)

    def blocked(self) -> tuple[str, ...]:
        """Those that were not let through and nobody took, in words, each once."""
        with self._lock:
            return tuple(dict.fromkeys(describe_attempt(one) for one in self._kept if not one.allowed))


class ServerPrograms:
    """Starts them for one workspace. Any thread may."""

    def __init__(self, settings: Settings, workspace: str, state: str, environ: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._commands = CommandEnvironment(settings, state, environ)
        self._lock = threading.Lock()

    def start(self, wanted: ServerProgramSpec) -> ServerProgram:
        """Starts one; ToolError where it cannot be confined as it must be, or not be started."""
        with ExitStack() as held:
            attempts = Attempts()
            profile = self._profile(wanted)
            if wanted.network:
                proxy = self._proxy(wanted.network, attempts)
                held.callback(shutil.rmtree, os.path.dirname(proxy.path), ignore_errors=True)
                held.callback(proxy.close)
                profile = msgspec.structs.replace(profile, proxy=proxy.path, listed=wanted.network)
            launch = self._commands.sandbox.launch(profile, f"exec -- {shlex.join(wanted.words)}")
            attached = StdioProcess(launch, profile.limits)
            unseen = self._unseen(wanted.words, profile)
            return ServerProgram(attached, os.path.basename(wanted.words[0]), attempts, held.pop_all(), unseen)

    def close(self) -> None:
        """Lets go of what they needed in common, once all have ended. Can be repeated."""
        self._commands.close()

    def _profile(self, wanted: ServerProgramSpec) -> SandboxProfile:
        root = Root(self._workspace, writable=wanted.writable, main=True)
        try:
            with self._lock:
                found = self._commands.sensitive_paths.scan((root,))
            known = list_tracked(found.credentials, [root.path]) if found.credentials else ()
            check_roots((root,), "The server was not started.")
            writable = (root.path,) if wanted.writable else ()
            return SandboxProfile(
                origin="unasked",
                cwd=_folder(root.path, wanted.cwd),
                read_only=() if writable else (root.path,),
                writable=writable,
                read_only_paths=list_read_only_paths((root,)),
                hidden_files=(*found.sockets, *found.pipes, *(one for one in found.credentials if one not in known)),
                hidden_folders=found.credential_folders,
                variables=wanted.variables,
                limits=self._commands.limits(None, restricted=False),
            )
        finally:
            root.close()

    def _unseen(self, words: tuple[str, ...], profile: SandboxProfile) -> str:
        """The first of the words that is a file here and will not be in the sandbox."""
        files = (word for word in words if os.path.isabs(word) and os.path.isfile(word))
        return next((file for file in files if not self._commands.sandbox.shows(file, profile.roots)), "")

    def _proxy(self, hosts: tuple[str, ...], attempts: Attempts) -> Proxy:
        from handrail.policy.network.allowlist import Allowlist  # noqa: PLC0415  few have one

        try:
            with self._lock:
                place = build_socket_folder(self._commands.spill_folder)
            return Proxy(place, Allowlist.from_entries(hosts), attempts.add)
        except OSError as error:
            raise ToolError("UNAVAILABLE", f"The network could not be opened to it ({error.strerror}).") from None


def _folder(root: str, cwd: str) -> str:
    """Where it starts, without the links on the way; ToolError where that is not in the workspace."""
    place = os.path.realpath(os.path.join(root, cwd))
    if not os.path.isdir(place) or os.path.commonpath((root, place)) != root:
        raise ToolError("NOT_FOUND", f"Its folder {cwd[:200]!r} is not in the workspace.")
    return place
