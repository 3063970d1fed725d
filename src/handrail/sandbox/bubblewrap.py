"""Tier 2: commands in namespaces, by bubblewrap."""

import os
import resource
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import NamedTuple

from handrail.kernel.files import move_above_standard, open_pipe_above_standard
from handrail.protocol.errors import ToolError
from handrail.sandbox.environment import build_environment, find_bash
from handrail.sandbox.launch import Launch
from handrail.sandbox.mounts import Mount, collapse_hidden, drop_missing, is_shown, is_within
from handrail.sandbox.overlay.overlay import Overlay, require_programs, wrap_in_overlay
from handrail.sandbox.profile import ResourceLimits, SandboxHost, SandboxProfile
from handrail.sandbox.reset_signals import wrap_with_fresh_signals
from handrail.sandbox.seccomp_rules import require_filter
from handrail.sandbox.view import BaseView, build_base_view, build_view

# § [sandbox.namespaces.bubblewrap] The program that makes tier 2: where it is and what it can do.

SYSTEM_PROGRAMS = ("/usr/bin/bwrap", "/bin/bwrap")
"""First: where user namespaces are restricted, the system makes its exception for the program at this place."""


class Bubblewrap(NamedTuple):
    """The program, and what it can do."""

    path: str
    version: str
    options: frozenset[str]


def find_bubblewrap(environ: Mapping[str, str]) -> str | None:
    """The path of bwrap: the system's own, else the first on PATH."""
    on_path = (os.path.join(folder, "bwrap") for folder in environ.get("PATH", "").split(os.pathsep))
    for program in (*SYSTEM_PROGRAMS, *on_path):
        if os.path.isabs(program) and os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return None


def inspect_bubblewrap(path: str) -> Bubblewrap:
    """Asks the program at a path what it is; OSError where it does not run."""
    status = os.stat(path)
    return _asked(path, status.st_ino, status.st_mtime_ns)


@lru_cache(maxsize=8)
def _asked(path: str, _inode: int, _changed: int) -> Bubblewrap:
    version = _printed(path, "--version").removeprefix("bubblewrap ").strip()
    words = _printed(path, "--help").split()
    return Bubblewrap(path, version[:40], frozenset(word for word in words if word.startswith("--")))


def _printed(path: str, option: str) -> str:
    done = subprocess.run(  # noqa: S603  a fixed program with a fixed option
        [path, option], env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
    )
    return (done.stdout or done.stderr).decode("utf-8", "replace")


# § [sandbox.namespaces.arguments] What bubblewrap is told: the namespaces to make, and the view of the disk in
# § them.

_SHARE_OF_MEMORY = 4
"""What a private folder may hold, as a part of the memory limit: no process is seen to use it."""


def build_arguments(program: Bubblewrap, view: Iterable[Mount], nothing: str, limits: ResourceLimits) -> Iterator[str]:
    """Everything but what differs from one start to the next. `nothing` has an empty file and an empty folder."""
    # As root, bubblewrap leaves every capability, and it goes on without a user namespace where there can be none.
    yield from ("--unshare-all", "--unshare-user", "--cap-drop", "ALL", "--die-with-parent", "--hostname", "localhost")
    # In an overlay's user namespace everybody is root; to the command nobody is but who is.
    yield from ("--uid", str(os.geteuid()), "--gid", str(os.getegid()))
    if "--disable-userns" in program.options:
        yield "--disable-userns"
    mounts = tuple(view)
    opened = {mount.place for mount in mounts if mount.kind == "no-folder" and _holds_another(mount, mounts)}
    size = ("--size", str(limits.memory // _SHARE_OF_MEMORY)) if "--size" in program.options else ()
    for mount in mounts:
        yield from ("--tmpfs", mount.place) if mount.place in opened else _mounted(mount, nothing, size)
    # What bubblewrap makes folders in is closed at the end: else a command could fill it without a limit.
    for mount in mounts:
        if mount.kind == "devices" or mount.place in opened:
            yield from ("--remount-ro", mount.place)
    if not any(mount.place == "/" for mount in mounts):
        yield from ("--remount-ro", "/")


def _mounted(mount: Mount, nothing: str, size: tuple[str, ...]) -> tuple[str, ...]:
    words = {
        "shown": ("--ro-bind", mount.place),
        "read-only": ("--ro-bind", mount.place),
        "sealed": ("--ro-bind", mount.place),
        "writable": ("--bind", mount.place),
        "pinned": ("--bind", mount.place),
        "home": (*size, "--tmpfs"),
        "private": (*size, "--tmpfs"),
        "own-file": ("--ro-bind", mount.target),
        "link": ("--symlink", mount.target),
        "no-file": ("--ro-bind", f"{nothing}/file"),
        "no-folder": ("--ro-bind", f"{nothing}/folder"),
        "processes": ("--proc",),
        "devices": ("--dev",),
        "proxy": ("--ro-bind", mount.target),
    }
    # The kernel lets whoever is root outside write its switches, without asking for any privilege.
    switches = ("--ro-bind", "/proc/sys", f"{mount.place}/sys") if mount.kind == "processes" else ()
    return (*words[mount.kind], mount.place, *switches)


def _holds_another(mount: Mount, mounts: tuple[Mount, ...]) -> bool:
    return any(other.place != mount.place and is_within(other.place, mount.place) for other in mounts)


# § [sandbox.namespaces.guard] What bash reads before the command: nothing runs when nobody is there any more, and
# § its limits hold from the start. It comes by a file that BASH_ENV names, not in front of the command's text: what
# § bash says about the text, such as the line it finds wrong, is about the text alone.

NOBODY_THERE = 125
"""The exit code of a command that was not begun, since who asked for it is gone."""

_KILOBYTE = 1024


def build_guard_script(lifeline: int, own: int, limits: str) -> bytes:
    """The script: `lifeline` reads to its end once the runtime is gone, `own` is the file the script comes by."""
    gone = f"read -t 0 -u {lifeline} && exit {NOBODY_THERE}"
    return f"unset BASH_ENV; {gone}; exec {lifeline}<&- {own}<&-; {limits}\n".encode()


def build_limit_script(limits: ResourceLimits) -> str:
    """What sets the limits of each process, as a part of the script."""
    chosen = ["ulimit -c 0", f"ulimit -f {count_file_kilobytes(limits)}"]
    if is_counted_by_namespace():
        threads = _at_most(resource.RLIMIT_NPROC, limits.threads)
        chosen.append(f"ulimit -u {threads}")
    return "; ".join(chosen)


def count_file_kilobytes(limits: ResourceLimits) -> int:
    """As bash counts: in kilobytes."""
    return _at_most(resource.RLIMIT_FSIZE, limits.file_size) // _KILOBYTE


def is_counted_by_namespace() -> bool:
    """Whether the kernel counts processes by user namespace; an older one counts all of the user's, who may well have
    more outside than a command may have inside."""
    numbers = os.uname().release.split("-")[0].split(".")[:2]
    return [int(number) if number.isdigit() else 0 for number in numbers] >= [5, 14]


def _at_most(limit: int, wanted: int) -> int:
    most = resource.getrlimit(limit)[1]
    return wanted if most == resource.RLIM_INFINITY else min(wanted, most)


# § [sandbox.namespaces.launching] Tier 2: starts a command in namespaces of its own.


class PreparedCommand(NamedTuple):
    """Everything about a command's sandbox that does not differ from one start to the next."""

    program: str
    arguments: bytes
    """As bubblewrap reads them from a file."""
    bash: str
    environment: Mapping[str, str]
    filter: bytes
    limiting: str
    """What sets the limits of each process, for the guard."""


def launch_namespaced(prepared: PreparedCommand, text: str, overlay: Overlay | None = None) -> Launch:
    """A command that is ready to be started, under its overlay if it has one."""
    opened: list[int] = []
    try:
        return _launch(prepared, text, overlay, opened)
    except BaseException:
        for descriptor in opened:
            os.close(descriptor)
        raise


def encode_arguments(words: Iterable[str]) -> bytes:
    """Arguments as bubblewrap reads them from a file."""
    return b"".join(b"%b\0" % os.fsencode(word) for word in words)


def _launch(prepared: PreparedCommand, text: str, overlay: Overlay | None, opened: list[int]) -> Launch:
    status = _pipe(opened)[0]
    status_end = _both_ends(opened)
    lifeline_end, lifeline = _pipe(opened)
    script = _file(opened, lambda own: build_guard_script(lifeline_end, own, prepared.limiting))
    rules = _file(opened, lambda _: prepared.filter)
    own = ("--json-status-fd", str(status_end), "--seccomp", str(rules))
    told = encode_arguments(own) + prepared.arguments
    # By a file: what is told names the hidden, and everybody can read a process's arguments.
    listed = _file(opened, lambda _: told)
    shell = (prepared.bash, "--noprofile", "--norc", "-c", text)
    argv = (prepared.program, "--args", str(listed), "--", *shell)
    if overlay is not None:
        argv = wrap_in_overlay(argv, overlay, require_programs())
    return Launch(
        tier=2 if overlay is None else 3,
        argv=wrap_with_fresh_signals(argv),
        # First: by that process/tree.py knows bubblewrap's processes for ours.
        environment={"BASH_ENV": f"/proc/self/fd/{script}", **prepared.environment},
        inherited=(status_end, lifeline_end, script, rules, listed),
        status=status,
        lifeline=lifeline,
        own_processes=True,
    )


def _pipe(opened: list[int]) -> tuple[int, int]:
    ends = open_pipe_above_standard()
    opened += ends
    return ends


def _both_ends(opened: list[int]) -> int:
    """The end of the latest pipe to write to, in the place of one that can also be read from. With nobody left to read
    the status, writing it would kill the one of bubblewrap's processes that the other waits for."""
    both = move_above_standard(os.open(f"/proc/self/fd/{opened[-1]}", os.O_RDWR | os.O_CLOEXEC))
    os.close(opened[-1])
    opened[-1] = both
    return both


def _file(opened: list[int], content: Callable[[int], bytes]) -> int:
    """A file in memory, to be read from its beginning; what is in it may depend on its number."""
    descriptor = move_above_standard(os.memfd_create("handrail"))
    opened.append(descriptor)
    os.write(descriptor, content(descriptor))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


# § [sandbox.namespaces.nothing] The empty file and the empty folder that lie over what a command must not see.


def make_empty_placeholders(state: str) -> str:
    """The folder in the state folder that has them, as `file` and `folder`; made where it is not there."""
    place = os.path.join(state, "nothing")
    if not _is_there(place):
        _make(place)
    if not _is_there(place):
        raise FileExistsError(f"{place} holds something; remove it")
    return place


def _is_there(place: str) -> bool:
    return _is_empty_file(f"{place}/file") and _is_empty_folder(f"{place}/folder")


def _make(place: str) -> None:
    os.makedirs(f"{place}/folder", mode=0o700, exist_ok=True)
    # Written anew and put in place at once: another command may be starting with the one that is there.
    new = f"{place}/file.{os.urandom(6).hex()}"
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o444))
    os.replace(new, f"{place}/file")


def _is_empty_file(path: str) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == 0


def _is_empty_folder(path: str) -> bool:
    try:
        return not os.path.islink(path) and not os.listdir(path)
    except OSError:
        return False


# § [sandbox.namespaces.preparing] Puts together what tier 2 needs for a command, and keeps what is the same for the
# § next.

_MAX_KEPT_PROFILES = 32
_MAX_HIDDEN_PATHS = 2_000
"""Bubblewrap takes 9,000 arguments, three for each."""


class _Kept(NamedTuple):
    around: BaseView
    prepared: PreparedCommand


class BubblewrapBackend:
    """Prepares commands for one program and one host."""

    def __init__(self, program: Bubblewrap, host: SandboxHost) -> None:
        self.program = program
        self._host = host
        self._kept: dict[SandboxProfile, _Kept] = {}

    def launch(self, profile: SandboxProfile, text: str, overlay: Overlay | None = None) -> Launch:
        """The command, ready to be started."""
        chosen = collapse_hidden(drop_missing(profile))
        prepared = self._prepared_alone(chosen) if chosen.proxy or chosen.variables else self._prepared(chosen)
        return launch_namespaced(prepared, text, overlay)

    def _prepared(self, profile: SandboxProfile) -> PreparedCommand:
        around = build_base_view(self._host, profile.roots)
        kept = self._kept.get(profile)
        if kept is None or kept.around is not around:
            kept = _Kept(around, self._prepare(profile, around))
            if len(self._kept) >= _MAX_KEPT_PROFILES:
                self._kept.clear()
            self._kept[profile] = kept
        return kept.prepared

    def _prepared_alone(self, profile: SandboxProfile) -> PreparedCommand:
        """Not kept: every call has a proxy of its own, and variables of its own are secrets."""
        prepared = self._prepare(profile, build_base_view(self._host, profile.roots))
        own = (*_handing_over(profile), *map(_exported, profile.variables))
        return prepared._replace(limiting="; ".join((prepared.limiting, *own)))

    def _prepare(self, profile: SandboxProfile, around: BaseView) -> PreparedCommand:
        self._check(profile)
        view = build_view(profile, around)
        told = build_arguments(self.program, view, self._nothing(), profile.limits)
        return PreparedCommand(
            program=self.program.path,
            arguments=encode_arguments((*told, "--chdir", profile.cwd)),
            bash=find_bash(self._host.environ.get("PATH", ""), partial(_is_shown, around)),
            environment=around.with_ripgrep(build_environment(profile, self._host, lambda path: is_shown(view, path))),
            filter=require_filter(profile.origin, 2),
            limiting=build_limit_script(profile.limits),
        )

    def _check(self, profile: SandboxProfile) -> None:
        hidden = len(profile.hidden_files) + len(profile.hidden_folders) + len(profile.read_only_paths)
        if hidden > _MAX_HIDDEN_PATHS:
            raise ToolError(
                "LIMIT_EXCEEDED",
                f"The workspace holds {hidden:,} credentials, sockets and protected files, and {_MAX_HIDDEN_PATHS:,}"
                " can be kept from a command. Nothing was run. Ask the person to remove some, or to open a smaller"
                " folder.",
            )
        program = os.path.realpath(self.program.path)
        if self.program.path not in SYSTEM_PROGRAMS and any(is_within(program, root) for root in profile.writable):
            text = (
                f"Bubblewrap at {program} lies in the workspace, where anybody could have written it. Nothing was run."
            )
            raise ToolError("SANDBOX_UNAVAILABLE", f"{text} Install it on the system.")

    def _nothing(self) -> str:
        try:
            return make_empty_placeholders(self._host.state)
        except OSError as error:
            raise ToolError(
                "SANDBOX_UNAVAILABLE", f"The state folder cannot be used: {error}. Nothing was run."
            ) from None


def _handing_over(profile: SandboxProfile) -> Iterator[str]:
    if not profile.proxy:
        return
    from handrail.sandbox.proxy.handover import build_handover_command  # noqa: PLC0415  few commands have one
    from handrail.sandbox.view import find_interpreter  # noqa: PLC0415  as above

    if profile.is_read_only:
        raise ValueError("a command that only looks may open no socket, so no proxy either")
    yield build_handover_command(find_interpreter())


def _exported(variable: tuple[str, str]) -> str:
    """By the guard's script, which nobody else reads: in bubblewrap's own environment, one that steers the loader would
    be in force outside of the sandbox."""
    name, value = variable
    quoted = value.replace("'", "'\\''")
    return f"export {name}='{quoted}'"


def _is_shown(around: BaseView, program: str) -> bool:
    """Whether every command sees it, whatever its roots are: then no agent can have written it."""
    return around.shows(program) and around.shows(os.path.realpath(program))
