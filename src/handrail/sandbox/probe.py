"""Probes: attempts to break a tier or an overlay before handrail relies on it."""

import os
import secrets
import socket
import stat
import subprocess
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from handrail.protocol.errors import ToolError
from handrail.sandbox.bubblewrap import count_file_kilobytes
from handrail.sandbox.launch import Launch
from handrail.sandbox.overlay.overlay import NOT_MOUNTED, Overlay, is_opaque, wrap_in_overlay
from handrail.sandbox.profile import ResourceLimits, SandboxHost, SandboxProfile
from handrail.store.state_dir import make_temporary_folder

LaunchCommand = Callable[[SandboxProfile, SandboxHost, str], Launch]
_Result = TypeVar("_Result")

_PROBE_SECONDS = 20.0
_LIMITS = ResourceLimits(file_size=7 << 20)
"""A file size that is no common limit."""
_TIER_SCRIPT = """
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
_OVERLAY_SCRIPT = """
name=$1; shift
for root; do
    cd "$root/$name" && [ -f gone ] && rm gone replaced/old && rmdir replaced && mkdir replaced && echo new >kept
done
"""


class _Stage(NamedTuple):
    """A folder with files that the probe may change, may read, or may not see."""

    folder: Path
    secret: str
    listener: socket.socket


def probe_tier(launch: LaunchCommand, host: SandboxHost, *, expected: Mapping[str, str]) -> str | None:
    """The first fault of a tier. `expected` are lines of /proc/self/status in the command."""
    try:
        return retry_timeout(lambda: _find_tier_fault(launch, host, expected))
    except (OSError, ToolError, subprocess.SubprocessError) as error:
        return f"its test failed: {error}"


def retry_timeout(work: Callable[[], _Result]) -> _Result:
    """Do the work, once more if it times out: a busy machine is no reason for a weaker tier."""
    try:
        return work()
    except subprocess.TimeoutExpired:
        return work()


def _find_tier_fault(launch: LaunchCommand, host: SandboxHost, expected: Mapping[str, str]) -> str | None:
    with make_temporary_folder("handrail-probe-") as folder, socket.socket() as listener:
        stage = _set_stage(Path(folder), listener)
        return next(_find_tier_faults(stage, _run_in_tier(launch, stage, host), expected), None)


def _set_stage(folder: Path, listener: socket.socket) -> _Stage:
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


def _run_in_tier(launch_command: LaunchCommand, stage: _Stage, host: SandboxHost) -> str:
    inside, looked, home, state = (str(stage.folder / name) for name in ("inside", "looked", "home", "state"))
    profile = SandboxProfile(origin="unasked", cwd=inside, read_only=(looked,), writable=(inside,), limits=_LIMITS)
    own = msgspec.structs.replace(host, home=home, state=state, toolchains=(), variables=())
    script = _TIER_SCRIPT.replace("PORT", str(stage.listener.getsockname()[1]))
    with launch_command(profile, own, script) as launch:
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
    lines = [line.strip() for line in printed.split("\n") if line.strip()]
    if "probed" not in lines:
        yield lines[-1][:200] if lines else "it ended without an answer"
    if not (stage.folder / "inside/written").exists():
        yield "a command cannot write in the workspace"
    for place, name in (("looked", "a read-only folder"), ("outside", "a file outside the workspace")):
        if (stage.folder / place / "canary").read_text() != "as it was":
            yield f"a command can change {name}"
    if stage.secret in printed:
        yield "a command can read what is hidden from it"
    if _has_connection(stage.listener):
        yield "a command can reach the network"
    if f"largest {count_file_kilobytes(_LIMITS)}" not in lines:
        yield "the limits of a command do not hold"
    for name, value in expected.items():
        if f"{name}: {value}" not in lines:
            yield f"a command does not run with {name} {value}"


def _has_connection(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@contextmanager
def make_probe_folder(state: str) -> Generator[str | None]:
    """A temporary folder on the disk of the state folder, which stays unchanged. None if none can be made."""
    around = state
    while not os.path.isdir(around) and around != os.path.dirname(around):
        around = os.path.dirname(around)
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(make_temporary_folder(".handrail-probe-", around))
        except OSError:
            folder = None
        yield folder


def probe_overlay(folder: str, roots: tuple[str, ...], *, in_user_namespace: bool) -> str | None:
    """The first fault of overlays in a folder. Nothing changes outside of that folder."""
    mark = f"handrail-probe-{os.urandom(8).hex()}"
    below_folder, overlay_folder = (os.path.join(folder, os.urandom(8).hex()) for _ in range(2))
    try:
        with ExitStack() as stack:
            below = Overlay(below_folder, roots, in_user_namespace=in_user_namespace)
            stack.callback(below.remove)
            overlay = Overlay(overlay_folder, roots, (below,), in_user_namespace=in_user_namespace)
            stack.callback(overlay.remove)
            for mount in below.overlaid:
                changed = os.path.join(mount.upper, mark)
                os.makedirs(os.path.join(changed, "replaced"))
                for name in ("gone", "kept", "replaced/old"):
                    with open(os.path.join(changed, name), "x", encoding="ascii") as file:
                        file.write("old\n")
            printed = _run_in_overlay(overlay, mark)
            return next(_find_overlay_faults(overlay, mark, printed), None)
    except (OSError, ToolError, subprocess.SubprocessError) as error:
        return f"its test failed: {error}"


def _run_in_overlay(overlay: Overlay, mark: str) -> str:
    argv = ("/bin/sh", "-c", _OVERLAY_SCRIPT, "handrail", mark, *(mount.root for mount in overlay.overlaid))
    done = subprocess.run(  # noqa: S603  programs of the system with words of our own
        wrap_in_overlay(argv, overlay),
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
    error = extract_mount_error(printed)
    if NOT_MOUNTED in printed:
        yield error or "it cannot be mounted"
    for mount in overlay.overlaid:
        changed = os.path.join(mount.upper, mark)
        if os.path.lexists(os.path.join(mount.root, mark)):
            yield "an overlay writes through to the workspace"
        if not _has_changes(changed):
            yield error or "an overlay does not store its changes"
        if not is_opaque(os.path.join(changed, "replaced")):
            yield error or "a folder cannot be replaced in an overlay"


def extract_mount_error(printed: str) -> str:
    lines = [line.strip() for line in printed.split("\n")]
    messages = [line for line in lines if line and line != NOT_MOUNTED and not line.startswith("dmesg")]
    return messages[-1][:300] if messages else ""


def _has_changes(folder: str) -> bool:
    """Whether an upper folder has the whiteout of the removed file and the text of the changed one."""
    try:
        status = os.lstat(os.path.join(folder, "gone"))
        with open(os.path.join(folder, "kept"), encoding="ascii") as file:
            text = file.read(100)
    except (OSError, ValueError):
        return False
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0 and text == "new\n"
