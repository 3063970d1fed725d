"""Server programs: each runs in a sandbox of its own, connected by pipes."""

import os
import shlex
import shutil
import threading
from collections.abc import Mapping
from contextlib import ExitStack

import msgspec

from handrail.policy.network.allowlist import Allowlist
from handrail.process.event_loop import EventLoop
from handrail.process.output import clean_output
from handrail.process.stdio_process import StdioProcess
from handrail.protocol.errors import ToolError
from handrail.sandbox.profile import SandboxProfile
from handrail.sandbox.proxy.handover import build_socket_folder
from handrail.sandbox.proxy.proxy import Attempt, Proxy
from handrail.settings import Settings
from handrail.tools.command_environment import CommandEnvironment
from handrail.tools.exec.run import describe_attempt
from handrail.workspace.facts import list_tracked
from handrail.workspace.roots import Root, check_roots
from handrail.workspace.sensitive_paths import list_read_only_paths

_MAX_KEPT_ATTEMPTS = 1_000
"""Network attempts that are kept until they are taken. Further ones are dropped."""
_NOT_FOUND = 127
_NOT_RUNNABLE = 126
_EXCEEDED: Mapping[str, str] = {
    "memory": "it used more memory than limits.memory and was stopped",
    "processes": "it had more processes than limits.processes and was stopped",
}


class ServerProgramSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A program to start, with its access."""

    words: tuple[str, ...]
    cwd: str = "."
    variables: tuple[tuple[str, str], ...] = ()
    network: tuple[str, ...] = ()
    writable: bool = False


class ServerProgram:
    """A running server program. It ends with this process."""

    def __init__(
        self, process: StdioProcess, program: str, attempts: "Attempts", resources: ExitStack, hidden_file: str = ""
    ) -> None:
        """`hidden_file` is a file of its command line that the sandbox does not show."""
        self._process = process
        self._program = program
        self._hidden_file = hidden_file
        self._resources = resources
        self.attempts = attempts
        self.tier = process.tier
        self.input, self.output = process.input, process.output
        """Non-blocking descriptors: the program reads the first and writes the second."""

    @property
    def stderr_tail(self) -> str:
        """The end of its stderr, as text for people."""
        return clean_output(self._process.stderr_tail).strip()

    @property
    def how_it_ended(self) -> str | None:
        """The reason why it ended. None while it runs, and after `end`."""
        ending, code = self._process.ending, self._process.exit_code
        if ending is None or ending == "cancelled":
            return None
        if ending == "failed":
            return "its sandbox could not be set up (see handrail doctor)"
        if ending in _EXCEEDED:
            return _EXCEEDED[ending]
        if code == _NOT_FOUND:
            return self._describe_missing_program()
        reason = f"{self._program} cannot be run" if code == _NOT_RUNNABLE else f"it ended with exit code {code}"
        return reason + self._describe_hidden_file()

    @property
    def never_ran(self) -> bool:
        """Whether the program could not be started. Then it could not be started again either."""
        return self._process.ending == "failed" or self._process.exit_code in {_NOT_FOUND, _NOT_RUNNABLE}

    def end(self) -> None:
        """Ends the program with everything it started, and closes its pipes. Can be repeated."""
        self._process.end()
        self._resources.close()

    def _describe_missing_program(self) -> str:
        if " " in self._program and not self._hidden_file:
            return f"there is no {self._program}: command is the program alone; its words are args"
        return (
            f"{self._program} was not found, or a program that it needs: its sandbox has the system's programs and the"
            f" usual toolchains{self._describe_hidden_file()}"
        )

    def _describe_hidden_file(self) -> str:
        if not self._hidden_file:
            return ""
        folder = os.path.dirname(self._hidden_file)
        return f'; {self._hidden_file} is not in its sandbox; sandbox.toolchains = ["{folder}"] shows it'


class Attempts:
    """The network attempts of a program until they are taken. Any thread may add one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempts: list[Attempt] = []

    def add(self, attempt: Attempt) -> None:
        with self._lock:
            if len(self._attempts) < _MAX_KEPT_ATTEMPTS:
                self._attempts.append(attempt)

    def take(self) -> tuple[tuple[str, int, bool, str], ...]:
        """Removes all attempts. Returns host, port, whether each was allowed, and the reason."""
        with self._lock:
            taken, self._attempts = self._attempts, []
        return tuple((one.host, one.port, one.allowed, one.reason or "the server's settings list it") for one in taken)

    def blocked(self) -> tuple[str, ...]:
        """Texts about the attempts that were blocked, each once."""
        with self._lock:
            return tuple(dict.fromkeys(describe_attempt(one) for one in self._attempts if not one.allowed))


class ServerPrograms:
    """Starts server programs in one workspace. Any thread may use it."""

    def __init__(self, settings: Settings, workspace: str, state: str, environ: Mapping[str, str]) -> None:
        self.loop = EventLoop()
        """Serves the programs."""
        self._workspace = workspace
        self._commands = CommandEnvironment(settings, state, environ)
        self._lock = threading.Lock()

    def start(self, spec: ServerProgramSpec) -> ServerProgram:
        """Starts a program. ToolError if it cannot be started or confined."""
        with self._lock:
            sandbox = self._commands.sandbox  # two threads would make two spill folders, and the proxy's be removed
        with ExitStack() as resources:
            attempts = Attempts()
            profile = self._build_profile(spec)
            if spec.network:
                proxy = self._start_proxy(spec.network, attempts)
                resources.callback(shutil.rmtree, os.path.dirname(proxy.path), ignore_errors=True)
                resources.callback(proxy.close)
                profile = msgspec.structs.replace(profile, proxy=proxy.path, listed=spec.network)
            launch = sandbox.launch(profile, f"exec -- {shlex.join(spec.words)}")
            process = StdioProcess(launch, profile.limits)
            files = (os.path.realpath(word) for word in spec.words if os.path.isabs(word) and os.path.isfile(word))
            hidden_file = next((file for file in files if not self._commands.sandbox.shows(file, profile.roots)), "")
            program = os.path.basename(spec.words[0])
            return ServerProgram(process, program, attempts, resources.pop_all(), hidden_file)

    def close(self) -> None:
        """Closes what all programs share, once they have ended. Can be repeated."""
        self.loop.close()
        self._commands.close()

    def _build_profile(self, spec: ServerProgramSpec) -> SandboxProfile:
        root = Root(self._workspace, writable=spec.writable, main=True)
        try:
            with self._lock:
                found = self._commands.sensitive_paths.scan((root,))
            tracked = list_tracked(found.credentials, [root.path]) if found.credentials else ()
            check_roots((root,), "The server was not started.")
            writable = (root.path,) if spec.writable else ()
            return SandboxProfile(
                origin="unasked",
                cwd=_resolve_cwd(root.path, spec.cwd),
                read_only=() if writable else (root.path,),
                writable=writable,
                read_only_paths=list_read_only_paths((root,)),
                hidden_files=(*found.sockets, *found.pipes, *(one for one in found.credentials if one not in tracked)),
                hidden_folders=found.credential_folders,
                variables=spec.variables,
                limits=self._commands.limits(None, restricted=False),
            )
        finally:
            root.close()

    def _start_proxy(self, hosts: tuple[str, ...], attempts: Attempts) -> Proxy:
        try:
            with self._lock:
                folder = build_socket_folder(self._commands.spill_folder)
            return Proxy(folder, Allowlist.from_entries(hosts), attempts.add)
        except OSError as error:
            raise ToolError("UNAVAILABLE", f"The network could not be opened to it ({error.strerror}).") from None


def _resolve_cwd(root: str, cwd: str) -> str:
    """The real path of a folder. ToolError if it is not in the workspace."""
    folder = os.path.realpath(os.path.join(root, cwd))
    if not os.path.isdir(folder) or os.path.commonpath((root, folder)) != root:
        raise ToolError("NOT_FOUND", f"The server's folder {cwd[:200]!r} is not a folder of the workspace.")
    return folder
