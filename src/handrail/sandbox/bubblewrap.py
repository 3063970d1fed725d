"""Tier 2: commands in namespaces, made by bubblewrap."""

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from handrail.kernel.bare_interpreter import build_bare_command
from handrail.kernel.files import DescriptorSet, write_memory_file
from handrail.protocol.errors import ToolError
from handrail.sandbox.environment import build_environment, find_bash
from handrail.sandbox.launch import Launch
from handrail.sandbox.mounts import Mount, is_shown
from handrail.sandbox.overlay.overlay import Overlay, wrap_in_overlay
from handrail.sandbox.profile import ResourceLimits, SandboxHost, SandboxProfile, collapse_hidden, drop_missing
from handrail.sandbox.proxy.handover import build_handover_command, find_proxy_host
from handrail.sandbox.seccomp_rules import require_filter
from handrail.sandbox.session_network import NEW_NETWORK, OWN_NETWORK_OPTION, wrap_in_network
from handrail.sandbox.view import BaseView, build_base_view, build_view, find_interpreter
from handrail.workspace.roots import is_inside

SYSTEM_PROGRAMS = ("/usr/bin/bwrap", "/bin/bwrap")
"""They come first: a system that restricts user namespaces makes its exception for this path."""
EXIT_NOT_BEGUN = 125
"""The exit code of a command that did not begin because handrail is gone."""
_MEMORY_SHARE = 4
"""A private folder may hold this part of the memory limit. Its content is not the memory of any process."""
_KILOBYTE = 1024
_MAX_KEPT_PROFILES = 32
_MAX_HIDDEN_PATHS = 2_000
"""bubblewrap takes 9,000 arguments, three for each path."""
_PREVIEW_VARIABLES = "PYTHONDONTWRITEBYTECODE=1 NPM_CONFIG_UPDATE_NOTIFIER=false"
"""Python reads the caches that exist and writes none. npm does not look for a newer npm."""
_SIGNALS_SET_BY_PYTHON = 1 << 12 | 1 << 24
"""SIGPIPE and SIGXFSZ. Python ignores them, and restores them in the programs it starts."""


class Bubblewrap(NamedTuple):
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
    """The version and options of a bwrap. OSError or SubprocessError if it does not run."""
    version = _run_with_option(path, "--version").removeprefix("bubblewrap ").strip()
    words = _run_with_option(path, "--help").split()
    return Bubblewrap(path, version[:40], frozenset(word for word in words if word.startswith("--")))


def _run_with_option(path: str, option: str) -> str:
    done = subprocess.run(  # noqa: S603  a fixed program with a fixed option
        [path, option], env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
    )
    return (done.stdout or done.stderr).decode("utf-8", "replace")


class PreparedCommand(NamedTuple):
    """The part of a sandbox that stays the same from one start to the next."""

    program: str
    arguments: bytes
    """In the format that bubblewrap reads from a file."""
    bash: str
    environment: Mapping[str, str]
    filter: bytes
    setup: str
    """Shell code that runs before the command."""


class BubblewrapBackend:
    def __init__(self, program: Bubblewrap, host: SandboxHost) -> None:
        self.program = program
        self._host = host
        self._cache: dict[SandboxProfile, tuple[BaseView, PreparedCommand]] = {}

    def launch(
        self, profile: SandboxProfile, text: str, overlay: Overlay | None = None, network: int | None = None
    ) -> Launch:
        prepared = self.prepare(collapse_hidden(drop_missing(profile)))
        return launch_namespaced(prepared, text, overlay, network, is_gated=profile.is_preview)

    def prepare(self, profile: SandboxProfile) -> PreparedCommand:
        base = build_base_view(self._host, profile.roots)
        if profile.proxy or profile.variables:  # not cached: each call has its own proxy, and variables are secrets
            return self._prepare(profile, base)
        cached = self._cache.get(profile)
        if cached is None or cached[0] is not base:
            cached = base, self._prepare(profile, base)
            if len(self._cache) >= _MAX_KEPT_PROFILES:
                self._cache.clear()
            self._cache[profile] = cached
        return cached[1]

    def _prepare(self, profile: SandboxProfile, base: BaseView) -> PreparedCommand:
        self._check(profile)
        view = build_view(profile, base)
        arguments = build_arguments(self.program, view, self._make_placeholders(), profile.limits)
        environment = build_environment(profile, self._host, lambda path: is_shown(view, path))

        def is_trusted(path: str) -> bool:
            """Whether every command sees it, whatever its roots. Then no agent can have written it."""
            return base.shows(path) and base.shows(os.path.realpath(path))

        return PreparedCommand(
            program=self.program.path,
            arguments=_encode_arguments((*arguments, "--chdir", profile.cwd)),
            bash=find_bash(self._host.environ.get("PATH", ""), is_trusted),
            environment=base.add_ripgrep(environment),
            filter=require_filter(profile.origin, 2, sockets=profile.sockets),
            setup="; ".join(_list_setup_commands(profile)),
        )

    def _check(self, profile: SandboxProfile) -> None:
        hidden = len(profile.hidden_files) + len(profile.hidden_folders) + len(profile.read_only_paths)
        if hidden > _MAX_HIDDEN_PATHS:
            raise ToolError(
                "LIMIT_EXCEEDED",
                f"The workspace holds {hidden:,} credentials, sockets and protected files, and {_MAX_HIDDEN_PATHS:,}"
                " can be hidden from a command. Nothing was run. Ask the user to remove some, or to open a smaller"
                " folder.",
            )
        program = os.path.realpath(self.program.path)
        if self.program.path not in SYSTEM_PROGRAMS and any(is_inside(program, root) for root in profile.writable):
            text = (
                f"Bubblewrap at {program} is in the workspace, where any program could have written it. Nothing "
                "was run."
            )
            raise ToolError("SANDBOX_UNAVAILABLE", f"{text} Install it on the system.")

    def _make_placeholders(self) -> str:
        try:
            return make_empty_placeholders(self._host.state)
        except OSError as error:
            raise ToolError(
                "SANDBOX_UNAVAILABLE", f"The state folder cannot be used: {error}. Nothing was run."
            ) from None


def launch_namespaced(
    prepared: PreparedCommand,
    text: str,
    overlay: Overlay | None = None,
    network: int | None = None,
    *,
    is_gated: bool = False,
) -> Launch:
    """The launch of a prepared command. `network`: the network namespace to enter, or NEW_NETWORK. None: its own."""
    with DescriptorSet() as opened:
        gated, gate = _open_gate(opened) if is_gated else ((), None)
        status, status_writer = opened.open_pipe()
        # Opened for reading too. Otherwise SIGPIPE would kill bubblewrap if handrail dies.
        status_end = opened.add(os.open(f"/proc/self/fd/{status_writer}", os.O_RDWR | os.O_CLOEXEC))
        lifeline_end, lifeline = opened.open_pipe()
        script = opened.open_memory_file()
        write_memory_file(script, _build_guard_script(lifeline_end, script, prepared.setup))
        rules = opened.open_memory_file(prepared.filter)
        # In a file: they name hidden paths, and every user can read the arguments of a process.
        own = _encode_arguments(("--json-status-fd", str(status_end), "--seccomp", str(rules)))
        own += _encode_arguments(word for end in gated for word in ("--block-fd", str(end)))
        arguments = opened.open_memory_file(own + prepared.arguments)
        shell = (prepared.bash, "--noprofile", "--norc", "-c", "--", text)
        own_network = () if network is None else (OWN_NETWORK_OPTION,)
        argv = (prepared.program, "--args", str(arguments), *own_network, "--", *shell)
        if overlay is not None:
            argv = wrap_in_overlay(argv, overlay)
        entered: tuple[int, ...] = ()
        if network is not None:
            entered = () if network == NEW_NETWORK else (opened.add(os.dup(network)),)
            argv = wrap_in_network(argv, entered[0] if entered else network)
        launch = Launch(
            tier=2 if overlay is None else 3,
            argv=_reset_inherited_signals(argv),
            # First: by BASH_ENV process/tree.py recognizes the processes of bubblewrap.
            environment={"BASH_ENV": f"/proc/self/fd/{script}", **prepared.environment},
            inherited=(status_end, lifeline_end, script, rules, arguments, *entered, *gated),
            status=status,
            lifeline=lifeline,
            own_processes=True,
            own_network=network is None,
            gate=gate,
        )
        opened.hand_on()
        os.close(status_writer)
        return launch


def _open_gate(opened: DescriptorSet) -> tuple[tuple[int, ...], int]:
    """A pipe that the command waits for: the end that it reads, and our end."""
    end, gate = opened.open_pipe()
    return (end,), gate


def _encode_arguments(words: Iterable[str]) -> bytes:
    return b"".join(b"%b\0" % os.fsencode(word) for word in words)


def _build_guard_script(lifeline: int, own: int, setup: str) -> bytes:
    """The script that bash reads from BASH_ENV before the command. It ends if handrail is gone.

    It does not stand in front of the command: the line numbers in messages of bash stay right.
    """
    gone = f"read -t 0 -u {lifeline} && exit {EXIT_NOT_BEGUN}"
    return f"unset BASH_ENV; {gone}; exec {lifeline}<&- {own}<&-; {setup}\n".encode()


def _list_setup_commands(profile: SandboxProfile) -> Iterator[str]:
    yield "ulimit -c 0"
    yield f"ulimit -f {count_file_kilobytes(profile.limits)}"
    if is_counted_by_namespace():
        yield f"ulimit -u {_cap_limit(resource.RLIMIT_NPROC, profile.limits.threads)}"
    if profile.proxy:
        if profile.is_read_only:
            raise ValueError("a read-only command may not open sockets, so it cannot reach the proxy")
        host = find_proxy_host(profile.proxy, shared=profile.joined)
        yield build_handover_command(find_interpreter(), host)
    if profile.is_preview:
        yield f"export {_PREVIEW_VARIABLES}"
    # Not in the environment of bubblewrap: a variable of the dynamic loader would work outside of the sandbox.
    for name, value in profile.variables:
        quoted = value.replace("'", "'\\''")
        yield f"export {name}='{quoted}'"


def count_file_kilobytes(limits: ResourceLimits) -> int:
    """The limit of a file's size in the unit of bash."""
    return _cap_limit(resource.RLIMIT_FSIZE, limits.file_size) // _KILOBYTE


def is_counted_by_namespace() -> bool:
    """Whether the kernel counts processes by user namespace. An older one counts all processes of the user."""
    numbers = os.uname().release.split("-")[0].split(".")[:2]
    return [int(number) if number.isdigit() else 0 for number in numbers] >= [5, 14]


def _cap_limit(limit: int, wanted: int) -> int:
    most = resource.getrlimit(limit)[1]
    return wanted if most == resource.RLIM_INFINITY else min(wanted, most)


def _reset_inherited_signals(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Start the program with default signals if this thread blocks or ignores one."""
    with open("/proc/thread-self/status", "rb") as status:
        masks = {line[:6]: int(line.split()[1], 16) for line in status if line.startswith((b"SigBlk", b"SigIgn"))}
    if not sys.executable or not masks[b"SigBlk"] | masks[b"SigIgn"] & ~_SIGNALS_SET_BY_PYTHON:
        return argv
    return build_bare_command("handrail.kernel.process", "exec_with_default_signals", *argv)


def build_arguments(program: Bubblewrap, view: Iterable[Mount], nothing: str, limits: ResourceLimits) -> Iterator[str]:
    """The arguments that make the namespaces and the view. `nothing` is the folder of the empty placeholders."""
    # For root, bubblewrap would keep every capability, and go on without a user namespace if it cannot make one.
    yield from ("--unshare-all", "--unshare-user", "--cap-drop", "ALL", "--die-with-parent", "--hostname", "localhost")
    # In the user namespace of an overlay the user is root. The command sees the real user.
    yield from ("--uid", str(os.geteuid()), "--gid", str(os.getegid()))
    if "--disable-userns" in program.options:
        yield "--disable-userns"
    mounts = tuple(view)
    opened = {mount.place for mount in mounts if mount.kind == "no-folder" and _contains_mount(mount, mounts)}
    size = ("--size", str(limits.memory // _MEMORY_SHARE)) if "--size" in program.options else ()
    for mount in mounts:
        yield from ("--tmpfs", mount.place) if mount.place in opened else _list_mount_arguments(mount, nothing, size)
    # Folders that bubblewrap creates mount points in become read-only last. A command could fill them without limit.
    for mount in mounts:
        if mount.kind == "devices" or mount.place in opened:
            yield from ("--remount-ro", mount.place)
    if not any(mount.place == "/" for mount in mounts):
        yield from ("--remount-ro", "/")


def _list_mount_arguments(mount: Mount, nothing: str, size: tuple[str, ...]) -> tuple[str, ...]:
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
    # The kernel lets root change its settings there, without asking for a capability.
    settings = ("--ro-bind", "/proc/sys", f"{mount.place}/sys") if mount.kind == "processes" else ()
    return (*words[mount.kind], mount.place, *settings)


def _contains_mount(mount: Mount, mounts: tuple[Mount, ...]) -> bool:
    return any(other.place != mount.place and is_inside(other.place, mount.place) for other in mounts)


def make_empty_placeholders(state: str) -> str:
    """The folder with the empty `file` and `folder` that cover hidden paths. It is created if needed."""
    place = os.path.join(state, "nothing")
    if not _has_placeholders(place):
        os.makedirs(f"{place}/folder", mode=0o700, exist_ok=True)
        # Replaced at once: another command may be starting with the present file.
        new = f"{place}/file.{os.urandom(6).hex()}"
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o444))
        os.replace(new, f"{place}/file")
    if not _has_placeholders(place):
        raise FileExistsError(f"{place} is not empty; remove it")
    return place


def _has_placeholders(place: str) -> bool:
    try:
        status = os.lstat(f"{place}/file")
        is_empty = not os.path.islink(f"{place}/folder") and not os.listdir(f"{place}/folder")
    except OSError:
        return False
    return is_empty and stat.S_ISREG(status.st_mode) and status.st_size == 0
