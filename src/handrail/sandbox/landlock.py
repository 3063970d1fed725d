"""Tiers 1 and 0: commands under a supervisor, with Landlock where there is one."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import lru_cache

import msgspec

from handrail.kernel.files import move_above_standard, open_pipe_above_standard
from handrail.kernel.landlock import (
    EXECUTE,
    FILE_RIGHTS,
    MAKE_DIR,
    MAKE_FIFO,
    MAKE_REG,
    MAKE_SOCK,
    MAKE_SYM,
    READ_DIR,
    READ_FILE,
    REFER,
    REMOVE_DIR,
    REMOVE_FILE,
    TRUNCATE,
    WRITE_FILE,
    Ruleset,
    build_file_rights,
    read_abi_version,
)
from handrail.kernel.process import CAP_DAC_OVERRIDE, CAP_FOWNER
from handrail.protocol.errors import ToolError
from handrail.sandbox.environment import build_environment, check_text, find_bash
from handrail.sandbox.launch import Launch
from handrail.sandbox.mounts import Mount, drop_missing, is_shown, is_within
from handrail.sandbox.profile import SandboxHost, SandboxProfile
from handrail.sandbox.seccomp_rules import require_filter
from handrail.sandbox.supervisor.plan import LandlockFence, SupervisorPlan
from handrail.sandbox.supervisor.private_folder import PREFIX, remove_abandoned
from handrail.sandbox.view import BaseView, build_base_view, build_view

# § [sandbox.supervision.rules] Landlock's rules for a command: what is allowed beneath which files and folders.
# § Landlock only adds rights: what is allowed beneath a folder cannot be taken back for a file in it. So where
# § something in a folder is hidden or sealed, the rights are given to what lies beside it, and the folder itself
# § can only be listed: names of hidden files can be seen there, and nothing new can be made.

READING = READ_FILE | READ_DIR | EXECUTE
MAKING = MAKE_DIR | MAKE_REG | MAKE_SYM | MAKE_FIFO | MAKE_SOCK
WRITING = WRITE_FILE | TRUNCATE | REMOVE_FILE | REMOVE_DIR | REFER | MAKING

_MAX_RULES = 2_000
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_KERNEL = ("/proc",)

LandlockRule = tuple[str, int]


def list_landlock_rules(
    profile: SandboxProfile, shown: Iterable[str], covered: Iterable[str]
) -> Iterator[LandlockRule]:
    """Paths and the rights beneath them; `shown` can be read besides the roots, and nothing that is `covered`."""
    hidden = {*covered, *profile.hidden_files, *profile.hidden_folders}
    for place in (*shown, *profile.read_only, *profile.writable):
        yield place, READ_DIR
        yield from ((part, READING) for part in _without(place, hidden))
    unwritable = {*hidden, *profile.read_only_paths, *profile.read_only}
    for place in profile.writable:
        yield from ((part, WRITING) for part in _without(place, unwritable))
    yield from ((device, READ_FILE | WRITE_FILE) for device in _DEVICES)
    yield from ((place, READ_FILE | READ_DIR) for place in _KERNEL)


def add_rules(ruleset: Ruleset, rules: Iterable[LandlockRule]) -> None:
    """Adds the rules; what is not there, or is a link, needs none."""
    for count, (path, rights) in enumerate(rules):
        if count == _MAX_RULES:
            raise ToolError(
                "SANDBOX_UNAVAILABLE",
                f"Too many files lie beside something hidden or sealed: there is room for {_MAX_RULES} rules, and"
                f" {path} is one more. Nothing was run. Install bubblewrap, or keep what is hidden in a folder with"
                " fewer files.",
            )
        _add(ruleset, path, rights)


def _add(ruleset: Ruleset, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # gone meanwhile, or out of the command's reach too
        return
    try:
        kind = os.fstat(place).st_mode
        rights &= ~0 if stat.S_ISDIR(kind) else FILE_RIGHTS
        # A link has no rights of its own, and who may talk to a socket is not a question of files.
        if rights and not stat.S_ISLNK(kind) and not stat.S_ISSOCK(kind):
            ruleset.allow(place, rights)
    finally:
        os.close(place)


def _without(place: str, exceptions: set[str]) -> Iterator[str]:
    """What together makes up the place without the exceptions; the place itself where none is in it."""
    return _parts(place, exceptions, {above for one in exceptions for above in _folders_above(one)})


def _parts(place: str, exceptions: set[str], ways: set[str]) -> Iterator[str]:
    if place in exceptions:
        return
    if place not in ways:
        yield place
        return
    try:
        names = os.listdir(place)
    except OSError:  # not a folder any more, or unreadable: nothing in it is allowed
        return
    for name in names:
        yield from _parts(os.path.join(place, name), exceptions, ways)


def _folders_above(path: str) -> Iterator[str]:
    while path != (above := os.path.dirname(path)):
        yield above
        path = above


# § [sandbox.supervision.fencing] The fence around a command at tier 1: Landlock's rules, the filter of system
# § calls, a folder to itself.

# Root in a container works on files that other users own; of its other rights a command has no need.
_LOOKING = (CAP_DAC_OVERRIDE,)
_CHANGING = (CAP_DAC_OVERRIDE, CAP_FOWNER)

_BESIDE = "/tmp"  # noqa: S108  a name is drawn here, and the supervisor makes the folder new or fails


def build_fence(profile: SandboxProfile, home: str, around: BaseView) -> LandlockFence:
    """The fence around a command; its ruleset is an open descriptor, to be closed by the caller."""
    version = read_abi_version()
    if not version:
        raise ToolError("SANDBOX_UNAVAILABLE", "This kernel has no Landlock, or it is switched off; tier 1 needs it.")
    _tidy_up()
    program = require_filter(profile.origin, 1)
    ruleset = Ruleset(version)
    ruleset.descriptor = move_above_standard(ruleset.descriptor)
    try:
        add_rules(ruleset, _rules(profile, around))
    except BaseException:
        ruleset.close()
        raise
    return LandlockFence(
        ruleset=ruleset.descriptor,
        filter=program,
        capabilities=_LOOKING if profile.is_read_only else _CHANGING,
        private=os.fsencode(f"{_BESIDE}/{PREFIX}{os.urandom(8).hex()}"),
        private_rights=(READING | WRITING) & build_file_rights(version),
        links=[(os.fsencode(name), os.fsencode(place)) for name, place in _links(around.mounts, home)],
    )


def _rules(profile: SandboxProfile, around: BaseView) -> Iterator[LandlockRule]:
    shown = [mount.place for mount in around.mounts if mount.kind == "shown"]
    covered = [mount.place for mount in around.wanted if mount.kind in {"no-file", "no-folder"}]
    return list_landlock_rules(_present(profile), shown, covered)


def _present(profile: SandboxProfile) -> SandboxProfile:
    """Without what is not there, since nothing can be made beside it; a link is sealed, and what it leads to."""
    there = [path for path in profile.read_only_paths if os.path.lexists(path)]
    sealed = {*there, *map(os.path.realpath, there)}
    return msgspec.structs.replace(drop_missing(profile), read_only_paths=tuple(sorted(sealed)))


@lru_cache(maxsize=1)
def _tidy_up() -> None:
    """Once in a process: what others left behind."""
    with suppress(OSError):
        remove_abandoned(_BESIDE)


def _links(mounts: Iterable[Mount], home: str) -> Iterator[tuple[str, str]]:
    """Names in the private home, and the toolchains in the real one that they lead to."""
    home = os.path.realpath(home)
    for mount in mounts:
        if mount.kind in {"shown", "link"} and mount.place != home and is_within(mount.place, home):
            yield os.path.relpath(mount.place, home), mount.place


# § [sandbox.supervision.launching] Tiers 1 and 0: a command under a supervisor, where there are no namespaces to
# § put it in.

_PROGRAM = os.path.abspath(os.path.join(os.path.dirname(__file__), "supervisor", "main.py"))


def launch_supervised(profile: SandboxProfile, host: SandboxHost, text: str, tier: int) -> Launch:
    """The command under a supervisor: fenced in by Landlock and seccomp at tier 1, by nothing at tier 0."""
    check_text(text)
    with ExitStack() as made:
        fence = _fence(profile, host, made) if tier else None
        environment = _environment(profile, host, fence)
        bash = find_bash(environment["PATH"], os.path.exists)  # none there that an agent could have written
        status, told = _pipe(made)
        watched, lifeline = _pipe(made)
        plan = SupervisorPlan(
            arguments=[os.fsencode(one) for one in (bash, "--noprofile", "--norc", "-c", text)],
            environment={os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
            | {os.fsencode(name): os.fsencode(value) for name, value in profile.variables},
            cwd=os.fsencode(profile.cwd),
            file_size=profile.limits.file_size,
            threads=profile.limits.threads,
            status=told,
            lifeline=watched,
            fence=fence,
        )
        launch = _launch(plan, host, status, lifeline)
        made.pop_all()  # they are the launch's from here on
        return launch


def _launch(plan: SupervisorPlan, host: SandboxHost, status: int, lifeline: int) -> Launch:
    if not sys.executable:
        raise ToolError("UNAVAILABLE", "Python cannot tell its own path (sys.executable), and commands are run by it.")
    written = move_above_standard(plan.write())
    return Launch(
        tier=1 if plan.fence else 0,
        argv=(sys.executable, "-I", "-S", _PROGRAM, str(written)),
        environment=_of_the_supervisor(host.environ),
        inherited=(written, plan.status, plan.lifeline, *([plan.fence.ruleset] if plan.fence else [])),
        status=status,
        lifeline=lifeline,
        own_processes=False,
    )


def _fence(profile: SandboxProfile, host: SandboxHost, made: ExitStack) -> LandlockFence:
    fence = build_fence(profile, host.home, build_base_view(host, profile.roots))
    made.callback(os.close, fence.ruleset)
    return fence


def _environment(profile: SandboxProfile, host: SandboxHost, fence: LandlockFence | None) -> dict[str, str]:
    if not fence:
        return build_environment(profile, host, os.path.exists)
    around = build_base_view(host, profile.roots)
    view = build_view(profile, around)
    private = os.fsdecode(fence.private)
    chosen = around.with_ripgrep(build_environment(profile, host, lambda path: is_shown(view, path)))
    return {**chosen, "HOME": f"{private}/home", "TMPDIR": f"{private}/tmp"}  # noqa: S108  not the machine's


def _pipe(made: ExitStack) -> tuple[int, int]:
    ends = open_pipe_above_standard()
    for end in ends:
        made.callback(os.close, end)
    return ends


def _of_the_supervisor(environ: Mapping[str, str]) -> dict[str, str]:
    """Where the interpreter itself needs it to start; the command's own variables are in the plan."""
    return {name: environ[name] for name in ("LD_LIBRARY_PATH",) if name in environ}
