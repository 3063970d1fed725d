"""Finds out by doing whether a tier confines: a small command tries what none may do."""

import secrets
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from handrail.protocol.errors import ToolError
from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.host import SandboxHost
from handrail.sandbox.launch import Launch
from handrail.sandbox.limits import ResourceLimits
from handrail.sandbox.namespaces.guard import count_file_kilobytes
from handrail.store.state_dir import make_temporary_folder

Start = Callable[[SandboxProfile, SandboxHost, str], Launch]

_PROBE_SECONDS = 20.0
_LIMITS = ResourceLimits(file_size=7 << 20)
"""Of a size that no file is limited to anyway."""
_SCRIPT = """
cd ..
echo x 2>/dev/null >inside/written
{ echo x >looked/canary; } 2>/dev/null
{ echo x >outside/canary; } 2>/dev/null
{ echo x >/dev/tcp/127.0.0.1/PORT; } 2>/dev/null
{ echo "$(<home/secret) $(<outside/secret)"; } 2>/dev/null
while read -r name value; do echo "$name $value"; done </proc/self/status
echo "largest $(ulimit -f)"
echo probed
"""


class _Stage(NamedTuple):
    """Where it happens: a folder with things that may be changed, read, or not even seen."""

    folder: Path
    secret: str
    listener: socket.socket

    def profile(self) -> SandboxProfile:
        inside, looked = str(self.folder / "inside"), str(self.folder / "looked")
        return SandboxProfile(origin="unasked", cwd=inside, read_only=(looked,), writable=(inside,), limits=_LIMITS)

    def host(self, host: SandboxHost) -> SandboxHost:
        home, state = str(self.folder / "home"), str(self.folder / "state")
        return msgspec.structs.replace(host, home=home, state=state, toolchains=(), variables=())

    def script(self) -> str:
        return _SCRIPT.replace("PORT", str(self.listener.getsockname()[1]))


def probe_tier(start: Start, host: SandboxHost, *, expected: Mapping[str, str]) -> str | None:
    """What is wrong with a tier, in words; None where it confines as it should. `expected` is what the kernel must say
    of the command in /proc/self/status."""
    try:
        with make_temporary_folder("handrail-probe-") as folder, socket.socket() as listener:
            stage = _staged(Path(folder), listener)
            return next(_find_tier_faults(stage, _run_in_tier(start, stage, host), expected), None)
    except (OSError, ToolError, subprocess.SubprocessError) as error:
        return f"trying it out failed: {error}"


def _staged(folder: Path, listener: socket.socket) -> _Stage:
    secret = secrets.token_hex(16)
    for name in ("inside", "looked", "outside", "home", "state"):
        (folder / name).mkdir()
    for name in ("looked/canary", "outside/canary"):
        (folder / name).write_text("as it was")
    for name in ("home/secret", "outside/secret"):
        (folder / name).write_text(secret)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)
    listener.setblocking(False)
    return _Stage(folder, secret, listener)


def _run_in_tier(start: Start, stage: _Stage, host: SandboxHost) -> str:
    with start(stage.profile(), stage.host(host), stage.script()) as launch:
        process = subprocess.Popen(  # noqa: S603  what a tier puts together
            launch.argv,
            env=launch.environment,
            pass_fds=launch.inherited,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        launch.close_child_ends()
        with process:
            try:
                return process.communicate(timeout=_PROBE_SECONDS)[0].decode("utf-8", "replace")
            finally:
                launch.drop_lifeline()
                process.kill()


def _find_tier_faults(stage: _Stage, printed: str, expected: Mapping[str, str]) -> Iterator[str]:
    lines = printed.split("\n")
    if "probed" not in lines:
        yield _last_words(lines)
    if not (stage.folder / "inside/written").exists():
        yield "a command cannot write in the workspace"
    for place, name in (("looked", "a read-only folder"), ("outside", "a file outside the workspace")):
        if (stage.folder / place / "canary").read_text() != "as it was":
            yield f"a command can change {name}"
    if stage.secret in printed:
        yield "a command can read what is hidden from it"
    if _was_reached(stage.listener):
        yield "a command can reach the network"
    if f"largest {count_file_kilobytes(_LIMITS)}" not in lines:
        yield "the limits of a command do not hold"
    for name, value in expected.items():
        if f"{name}: {value}" not in lines:
            yield f"a command does not run with {name} {value}"


def _was_reached(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _last_words(lines: list[str]) -> str:
    said = [line.strip() for line in lines if line.strip()]
    return said[-1][:200] if said else "it ended without a word"
