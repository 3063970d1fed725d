"""Commands under a supervisor: confined by Landlock in tier 1, unconfined in tier 0."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import PurePath

import msgspec

from handrail.kernel import landlock
from handrail.kernel.bare_interpreter import build_bare_command
from handrail.kernel.files import DescriptorSet
from handrail.kernel.process import CAP_DAC_OVERRIDE, CAP_FOWNER
from handrail.protocol.errors import ToolError
from handrail.sandbox.environment import build_environment, check_text, find_bash
from handrail.sandbox.launch import Launch
from handrail.sandbox.mounts import Mount, is_shown
from handrail.sandbox.profile import SandboxHost, SandboxProfile, drop_missing
from handrail.sandbox.seccomp_rules import require_filter
from handrail.sandbox.supervisor.plan import LandlockFence, SupervisorPlan
from handrail.sandbox.supervisor.program import PREFIX, remove_abandoned
from handrail.sandbox.view import BaseView, build_base_view, build_view
from handrail.workspace.resolve import closing_descriptor
from handrail.workspace.roots import is_inside

_READ = landlock.READ_FILE | landlock.READ_DIR | landlock.EXECUTE
_MAKE = landlock.MAKE_DIR | landlock.MAKE_REG | landlock.MAKE_SYM | landlock.MAKE_FIFO | landlock.MAKE_SOCK
_WRITE = landlock.WRITE_FILE | landlock.TRUNCATE | landlock.REMOVE_FILE | landlock.REMOVE_DIR | landlock.REFER | _MAKE
_MAX_RULES = 2_000
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# Root in a container needs these for files of other users, and no other capability.
_READ_CAPABILITIES = (CAP_DAC_OVERRIDE,)
_WRITE_CAPABILITIES = (CAP_DAC_OVERRIDE, CAP_FOWNER)
_TEMPORARY = "/tmp"  # noqa: S108  the supervisor makes a new folder there, or fails


def launch_supervised(profile: SandboxProfile, host: SandboxHost, text: str, tier: int) -> Launch:
    """A command that is ready to start under a supervisor: confined in tier 1, unconfined in tier 0."""
    check_text(text)
    if not sys.executable:
        raise ToolError(
            "UNAVAILABLE", "Python cannot tell its own path (sys.executable), which it needs to run commands."
        )
    with DescriptorSet() as opened:
        base = build_base_view(host, profile.roots) if tier else None
        fence = _build_fence(profile, host.home, base, opened) if base else None
        environment = _build_environment(profile, host, base, fence)
        bash = find_bash(environment["PATH"], os.path.exists)  # PATH has no folder that an agent can write to
        status, status_end = opened.open_pipe()
        lifeline_end, lifeline = opened.open_pipe()
        plan = SupervisorPlan(
            arguments=[os.fsencode(word) for word in (bash, "--noprofile", "--norc", "-c", "--", text)],
            environment={
                os.fsencode(name): os.fsencode(value) for name, value in (*environment.items(), *profile.variables)
            },
            cwd=os.fsencode(profile.cwd),
            file_size=profile.limits.file_size,
            threads=profile.limits.threads,
            status=status_end,
            lifeline=lifeline_end,
            fence=fence,
        )
        written = opened.open_memory_file(plan.encode())
        launch = Launch(
            tier=1 if fence else 0,
            argv=build_bare_command("handrail.sandbox.supervisor.program", "run", str(written)),
            # The interpreter may need it to start. The variables of the command are in the plan.
            environment={name: host.environ[name] for name in ("LD_LIBRARY_PATH",) if name in host.environ},
            inherited=(written, status_end, lifeline_end, *([fence.ruleset] if fence else [])),
            status=status,
            lifeline=lifeline,
            own_processes=False,
        )
        opened.hand_on()
        return launch


def _build_environment(
    profile: SandboxProfile, host: SandboxHost, base: BaseView | None, fence: LandlockFence | None
) -> dict[str, str]:
    if not base or not fence:
        return build_environment(profile, host, os.path.exists)
    view = build_view(profile, base)
    private = os.fsdecode(fence.private)
    chosen = base.add_ripgrep(build_environment(profile, host, lambda path: is_shown(view, path)))
    return {**chosen, "HOME": f"{private}/home", "TMPDIR": f"{private}/tmp"}  # noqa: S108  not the machine's


def _build_fence(profile: SandboxProfile, home: str, base: BaseView, opened: DescriptorSet) -> LandlockFence:
    version = landlock.read_abi_version()
    if not version:
        raise ToolError("SANDBOX_UNAVAILABLE", "This kernel has no Landlock, or Landlock is disabled; tier 1 needs it.")
    _remove_abandoned_once()
    program = require_filter(profile.origin, 1)
    ruleset = landlock.Ruleset(version)
    ruleset.descriptor = opened.add(ruleset.descriptor)
    for count, (path, rights) in enumerate(_list_rules(_seal_link_targets(profile), base)):
        if count == _MAX_RULES:
            raise ToolError(
                "SANDBOX_UNAVAILABLE",
                f"Too many files are next to a hidden or sealed entry: the limit is {_MAX_RULES} rules, and"
                f" {path} needs one more. Nothing was run. Install bubblewrap, or move the hidden entry to a folder"
                " with fewer files.",
            )
        _add_rule(ruleset, path, rights)
    return LandlockFence(
        ruleset=ruleset.descriptor,
        filter=program,
        capabilities=_READ_CAPABILITIES if profile.is_read_only else _WRITE_CAPABILITIES,
        private=os.fsencode(f"{_TEMPORARY}/{PREFIX}{os.urandom(8).hex()}"),
        private_rights=(_READ | _WRITE) & landlock.build_file_rights(version),
        links=[(os.fsencode(name), os.fsencode(place)) for name, place in _list_home_links(base.mounts, home)],
    )


@lru_cache(maxsize=1)
def _remove_abandoned_once() -> None:
    with suppress(OSError):
        remove_abandoned(_TEMPORARY)


def _seal_link_targets(profile: SandboxProfile) -> SandboxProfile:
    """The profile without missing paths. A read-only link is read-only together with its target."""
    present = [path for path in profile.read_only_paths if os.path.lexists(path)]
    sealed = {*present, *map(os.path.realpath, present)}
    return msgspec.structs.replace(drop_missing(profile), read_only_paths=tuple(sorted(sealed)))


def _list_home_links(mounts: Iterable[Mount], home: str) -> Iterator[tuple[str, str]]:
    """Names in the private home, and the toolchains in the real home that they lead to."""
    home = os.path.realpath(home)
    for mount in mounts:
        if mount.kind in {"shown", "link"} and mount.place != home and is_inside(mount.place, home):
            yield os.path.relpath(mount.place, home), mount.place


# Landlock only adds rights: a right for a folder cannot be withdrawn for a file in it. If a folder contains a hidden or
# sealed path, the other paths in it get the rights one by one, and the folder itself can only be listed. So the names
# of hidden files are visible, and nothing new can be made beside them.


def _list_rules(profile: SandboxProfile, base: BaseView) -> Iterator[tuple[str, int]]:
    """Paths, each with the rights for it and everything below it."""
    shown = [mount.place for mount in base.mounts if mount.kind == "shown"]
    covered = [mount.place for mount in base.wanted if mount.kind in {"no-file", "no-folder"}]
    hidden = {*covered, *profile.hidden_files, *profile.hidden_folders}
    for place in (*shown, *profile.read_only, *profile.writable):
        yield place, landlock.READ_DIR
        yield from ((part, _READ) for part in _split_around(place, hidden))
    unwritable = {*hidden, *profile.read_only_paths, *profile.read_only}
    for place in profile.writable:
        yield from ((part, _WRITE) for part in _split_around(place, unwritable))
    yield from ((device, landlock.READ_FILE | landlock.WRITE_FILE) for device in _DEVICES)
    yield "/proc", landlock.READ_FILE | landlock.READ_DIR


def _split_around(place: str, exceptions: set[str]) -> Iterator[str]:
    """The largest parts of a place that contain no exception."""
    return _list_parts(place, exceptions, {str(above) for path in exceptions for above in PurePath(path).parents})


def _list_parts(place: str, exceptions: set[str], parents: set[str]) -> Iterator[str]:
    if place in exceptions:
        return
    if place not in parents:
        yield place
        return
    try:
        names = os.listdir(place)
    except OSError:  # not a folder any more, or unreadable: nothing in it is allowed
        return
    for name in names:
        yield from _list_parts(os.path.join(place, name), exceptions, parents)


def _add_rule(ruleset: landlock.Ruleset, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # gone meanwhile, or out of the command's reach too
        return
    with closing_descriptor(place):
        kind = os.fstat(place).st_mode
        rights &= ~0 if stat.S_ISDIR(kind) else landlock.FILE_RIGHTS
        # A link has no rights, and Landlock does not guard connections to a socket.
        if rights and not stat.S_ISLNK(kind) and not stat.S_ISSOCK(kind):
            ruleset.allow(place, rights)
