"""Tries a tier, or an overlay, before it counts."""

import os
import secrets
import socket
import stat
import subprocess
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from handrail.protocol.errors import ToolError
from handrail.sandbox.bubblewrap import count_file_kilobytes
from handrail.sandbox.launch import Launch
from handrail.sandbox.overlay.overlay import NOT_MOUNTED, Overlay, OverlayMount, Programs, wrap_in_overlay
from handrail.sandbox.profile import ResourceLimits, SandboxHost, SandboxProfile
from handrail.store.state_dir import make_temporary_folder

# § [sandbox.probing.probe] Finds out by doing whether a tier confines: a small command tries what none may do.

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


# § [sandbox.probing.place] Where something can be tried out as in the state folder, without leaving a trace in it.


@contextmanager
def make_probe_folder(state: str) -> Generator[str | None]:
    """A folder on the disk of the state folder, which is not changed by looking; None where none can be made."""
    around = state
    while not os.path.isdir(around) and around != os.path.dirname(around):
        around = os.path.dirname(around)
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(make_temporary_folder(".handrail-probe-", around))
        except OSError:
            folder = None
        yield folder


# § [sandbox.layer.probe] Finds out by doing whether an overlay can lie over roots: one is mounted, and something is
# § changed in it.

_MARK = "handrail-probe-"
_CHANGED = """
name=$1; shift
for root; do
    cd "$root/$name" && [ -f gone ] && rm gone replaced/old && rmdir replaced && mkdir replaced && echo new >kept
done
"""


def probe_overlay(folder: str, roots: tuple[str, ...], programs: Programs, *, in_user_namespace: bool) -> str | None:
    """What is wrong, in words; None if overlays work. Nothing is changed but in `folder`, where overlays are stored."""
    mark = f"{_MARK}{os.urandom(8).hex()}"
    try:
        with ExitStack() as stack:
            below = Overlay(_new(folder), roots, in_user_namespace=in_user_namespace)
            stack.callback(below.remove)
            overlay = Overlay(_new(folder), roots, (below,), in_user_namespace=in_user_namespace)
            stack.callback(overlay.remove)
            for over in below.overlaid:
                _stage(os.path.join(over.upper, mark))
            printed = _run_in_overlay(overlay, mark, programs)
            return next(_find_overlay_faults(overlay, mark, printed), None)
    except (OSError, subprocess.SubprocessError) as error:
        return f"trying it out failed: {error}"


def _new(folder: str) -> str:
    return os.path.join(folder, os.urandom(8).hex())


def _stage(folder: str) -> None:
    """What an overlay changes: a file to remove, one to write to, and a folder in whose place comes another."""
    os.makedirs(os.path.join(folder, "replaced"))
    for name in ("gone", "kept", "replaced/old"):
        with open(os.path.join(folder, name), "x", encoding="ascii") as file:
            file.write("old\n")


def _run_in_overlay(overlay: Overlay, mark: str, programs: Programs) -> str:
    argv = ("/bin/sh", "-c", _CHANGED, "handrail", mark, *(over.root for over in overlay.overlaid))
    done = subprocess.run(  # noqa: S603  programs of the system with words of our own
        wrap_in_overlay(argv, overlay, programs),
        env={"LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        timeout=_PROBE_SECONDS,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace")


def _find_overlay_faults(overlay: Overlay, mark: str, printed: str) -> Iterator[str]:
    said = extract_mount_error(printed)
    if NOT_MOUNTED in printed:
        yield said or "it cannot be mounted"
    for over in overlay.overlaid:
        changed = os.path.join(over.upper, mark)
        if os.path.lexists(os.path.join(over.root, mark)):
            yield "what is changed in an overlay also changes the files below it"
        if not _is_removed(os.path.join(changed, "gone")) or _content(os.path.join(changed, "kept")) != "new\n":
            yield said or "what is changed in an overlay is not stored in it"
        if not _is_replaced(over, mark):
            yield said or "a folder cannot be replaced in an overlay"


def extract_mount_error(printed: str) -> str:
    """What was said about it, of all that was printed."""
    lines = [line.strip() for line in printed.split("\n")]
    said = [line for line in lines if line and line != NOT_MOUNTED and not line.startswith("dmesg")]
    return said[-1][:300] if said else ""


def _is_removed(path: str) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _is_replaced(over: OverlayMount, mark: str) -> bool:
    try:
        return os.getxattr(os.path.join(over.upper, mark, "replaced"), "user.overlay.opaque") == b"y"
    except OSError:
        return False


def _content(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read(100)
    except (OSError, ValueError):
        return ""
