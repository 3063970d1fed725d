"""The fence around a command at tier 1: Landlock's rules, the filter of system calls, a folder to itself."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache

import msgspec

from handrail.kernel.files import move_above_standard
from handrail.kernel.landlock import Ruleset, build_file_rights, read_abi_version
from handrail.kernel.process import CAP_DAC_OVERRIDE, CAP_FOWNER
from handrail.protocol.errors import ToolError
from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.filters.filter import require_filter
from handrail.sandbox.supervision.rules import READING, WRITING, LandlockRule, add_rules, list_landlock_rules
from handrail.sandbox.supervisor.plan import LandlockFence
from handrail.sandbox.supervisor.private import PREFIX, remove_abandoned
from handrail.sandbox.view.mounts import Mount, is_within
from handrail.sandbox.view.presence import drop_missing
from handrail.sandbox.view.view import BaseView

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
