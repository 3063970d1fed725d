"""What a command is refused where nothing but the filter keeps it from other processes."""

import errno
from itertools import product

import pytest
from filter_answers import OWNER, TRUSTS, becomes

from bpf_interpreter import ALLOWED
from handrail.kernel.seccomp import EVERY_BIT
from handrail.sandbox.profile import CommandOrigin

SHARED_MEMORY = "shmget shmat shmctl msgget msgsnd msgrcv msgctl semget semop semctl semtimedop mq_open mq_unlink"
ATTRIBUTES = "setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat"


@pytest.mark.parametrize("trust", ["unasked", "approved"])
def test_without_namespaces_files_are_given_to_nobody_else(trust: CommandOrigin) -> None:
    same, user, group = EVERY_BIT, *OWNER
    for name, before in (("chown", (0,)), ("lchown", (0,)), ("fchown", (0,)), ("fchownat", (0, 0))):
        for whose in product((same, user), (same, group)):
            assert becomes(trust, 1, name, *before, *whose) == {ALLOWED}
        for whose in ((user, 0), (same, user), (0, same), (group, group), (same, 4)):
            assert becomes(trust, 1, name, *before, *whose) == {errno.EPERM}
        assert becomes(trust, 2, name, *before, 0, 0) == {ALLOWED}


@pytest.mark.parametrize("trust", TRUSTS)
def test_without_namespaces_nothing_is_shared_with_processes_outside(trust: CommandOrigin) -> None:
    for name in SHARED_MEMORY.split():
        assert becomes(trust, 1, name) == {errno.ENOSYS}
        assert becomes(trust, 2, name) == {ALLOWED}


@pytest.mark.parametrize("trust", ["unasked", "approved"])
def test_without_namespaces_no_attribute_of_a_file_is_set(trust: CommandOrigin) -> None:
    for name in ATTRIBUTES.split():
        assert becomes(trust, 1, name) == {errno.EOPNOTSUPP}
        assert becomes(trust, 2, name) == {ALLOWED}


@pytest.mark.parametrize("trust", TRUSTS)
def test_without_namespaces_other_processes_keep_their_limits_and_turns(trust: CommandOrigin) -> None:
    first = "prlimit64 sched_setaffinity sched_setscheduler sched_setparam sched_setattr migrate_pages move_pages"
    for name in first.split():
        assert becomes(trust, 1, name, 0) == {ALLOWED}
        assert becomes(trust, 1, name, 1234) == {errno.EPERM}
        assert becomes(trust, 2, name, 1234) == {ALLOWED}
    for name, oneself, others in (
        ("setpriority", (0, 0), ((0, 1234), (1, 0), (2, 0))),
        ("ioprio_set", (1, 0), ((1, 1234), (2, 0), (3, 0))),
    ):
        assert becomes(trust, 1, name, *oneself) == {ALLOWED}
        assert {errno.EPERM}.union(*(becomes(trust, 1, name, *other) for other in others)) == {errno.EPERM}


@pytest.mark.parametrize("trust", TRUSTS)
def test_without_namespaces_no_signal_goes_to_everybody(trust: CommandOrigin) -> None:
    assert becomes(trust, 1, "kill", EVERY_BIT, 9) == {errno.EPERM}
    assert becomes(trust, 1, "kill", (1 << 64) - 1, 9) == {errno.EPERM}
    for process in (1234, 0, (1 << 64) - 1234):
        assert becomes(trust, 1, "kill", process, 9) == {ALLOWED}
    assert becomes(trust, 2, "kill", EVERY_BIT, 9) == {ALLOWED}
