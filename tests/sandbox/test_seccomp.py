"""Which system calls a command is refused, by trust and tier: the assembled programs, run for both machines."""

import errno
import random
import socket
from itertools import product

import pytest
from filter_answers import BESIDE, EVERY, OWNER, PROVEN, WITHOUT_NETWORK, becomes, program

from bpf_interpreter import ALLOWED, Arguments, answered, decided, described, told_apart
from handrail.kernel.seccomp import EVERY_BIT, ChoiceOutcome, Outcome, build_filter_program
from handrail.kernel.syscall_numbers import AARCH64, NUMBERS, X86_64, Machine, detect_machine
from handrail.sandbox.profile import CommandOrigin
from handrail.sandbox.seccomp_rules import build_filter, build_outcomes

ALWAYS = {
    errno.EPERM: "mount umount2 pivot_root chroot setns open_tree open_tree_attr move_mount fsopen fsconfig fsmount"
    " fspick mount_setattr ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd bpf"
    " perf_event_open userfaultfd fanotify_init lookup_dcookie uselib open_by_handle_at init_module finit_module"
    " delete_module kexec_load kexec_file_load reboot swapon swapoff acct quotactl quotactl_fd syslog clock_settime"
    " settimeofday adjtimex clock_adjtime sethostname setdomainname iopl ioperm vhangup",
    errno.ENOSYS: "clone3 io_uring_setup io_uring_enter io_uring_register add_key request_key keyctl modify_ldt",
}
METADATA = (
    "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat setxattr lsetxattr"
    " fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat file_setattr mknod mknodat"
)


@pytest.mark.parametrize("machine", [X86_64, AARCH64], ids=lambda machine: machine.name)
@pytest.mark.parametrize(("trust", "tier"), tuple(product(("proven", "unasked"), (1, 2))))
def test_every_number_has_the_outcome_that_the_tables_say(trust: CommandOrigin, tier: int, machine: Machine) -> None:
    outcomes = build_outcomes(trust, tier, OWNER)
    chance = random.Random(f"{trust} {tier} {machine.name}")
    for number in (*range(600), 0x40000000, 0x40000000 + 165, EVERY_BIT):
        for arguments in samples(outcomes, machine, number, chance):
            expected = described(outcomes, machine, number, arguments)
            assert answered(program(trust, tier, machine), machine.architecture, number, arguments) == expected, (
                number,
                arguments,
            )


def samples(outcomes: dict[str, Outcome], machine: Machine, number: int, chance: random.Random) -> list[Arguments]:
    named = [outcome for name, outcome in outcomes.items() if machine.number(name) == number]
    values = sorted({0, EVERY_BIT}.union(*map(told_apart, named)))
    values += [value ^ (1 << chance.randrange(64)) for value in values]
    return [tuple(chance.choice(values) for _ in range(6)) for _ in range(4 * len(values) if named else 1)]


@pytest.mark.parametrize(("trust", "tier"), EVERY)
def test_what_undoes_a_sandbox_is_refused_at_every_tier(trust: CommandOrigin, tier: int) -> None:
    for error, names in ALWAYS.items():
        assert {name: becomes(trust, tier, name) for name in names.split()} == {name: {error} for name in names.split()}


@pytest.mark.parametrize(("trust", "tier"), EVERY)
def test_processes_and_threads_are_made_but_no_namespaces(trust: CommandOrigin, tier: int) -> None:
    thread, fork, vfork = 0x3D0F00, 17, 0x4111
    for flags in (thread, fork, vfork, 0x1200011):
        assert becomes(trust, tier, "clone", flags) == {ALLOWED}
        for namespace in (0x20000, *(1 << bit for bit in range(25, 31))):
            assert becomes(trust, tier, "clone", flags | namespace) == {errno.EPERM}
            assert becomes(trust, tier, "clone", BESIDE | flags | namespace) == {errno.EPERM}
            assert becomes(trust, tier, "unshare", namespace) == {errno.EPERM}
    assert becomes(trust, tier, "unshare", 0x80) == {errno.EPERM}  # a namespace of clocks
    assert becomes(trust, tier, "unshare", 0x40600) == {ALLOWED}


@pytest.mark.parametrize(("trust", "tier"), EVERY)
def test_nothing_is_typed_into_a_terminal(trust: CommandOrigin, tier: int) -> None:
    for request in (0x5412, 0x541C, 0x5423):
        assert becomes(trust, tier, "ioctl", 0, request) == {errno.EPERM}
        assert becomes(trust, tier, "ioctl", 0, BESIDE | request) == {errno.EPERM}
    for request in (0x5401, 0x5413, 0x5410, 0x541B, 0x5421, 0x5451, 0x8912):
        assert becomes(trust, tier, "ioctl", 0, request) == {ALLOWED}


@pytest.mark.parametrize(("trust", "tier"), EVERY)
def test_no_snapshot_of_a_volume_uncovers_what_is_hidden_but_files_share_blocks(
    trust: CommandOrigin, tier: int
) -> None:
    for snapshot in (0x50009401, 0x50009417, 0x5000940E, 0xD0009412):
        assert becomes(trust, tier, "ioctl", 3, snapshot) == {errno.ENOTTY}
    for shared in (0x40049409, 0x4020940D, 0xC0189436):
        assert becomes(trust, tier, "ioctl", 3, shared) == {ALLOWED}


@pytest.mark.parametrize(("trust", "tier"), WITHOUT_NETWORK)
def test_attributes_of_files_are_read_but_not_set_where_no_mount_holds_them(trust: CommandOrigin, tier: int) -> None:
    for setting in (0x40086602, 0x401C5820, 0x40087602, 0x40806685, 0x800C6613, 0xC0045877, 0x4004F50D):
        assert becomes(trust, tier, "ioctl", 3, setting) == {errno.EPERM}
    for reading in (0x80086601, 0x801C581F, 0x80087601, 0xC020660B):
        assert becomes(trust, tier, "ioctl", 3, reading) == {ALLOWED}
    assert becomes("unasked", 2, "ioctl", 3, 0x40086602) == {ALLOWED}


@pytest.mark.parametrize(("trust", "tier"), PROVEN)
def test_a_command_that_only_looks_changes_nothing_about_a_file(trust: CommandOrigin, tier: int) -> None:
    names = METADATA.split()
    assert {name: becomes(trust, tier, name, 0, 0, 0, 0) for name in names} == {name: {errno.EPERM} for name in names}


@pytest.mark.parametrize(("trust", "tier"), EVERY)
def test_no_file_is_made_to_run_as_its_owner(trust: CommandOrigin, tier: int) -> None:
    for mode in (0o4755, 0o4000, 0o6755):
        assert becomes(trust, tier, "chmod", 0, mode) == {errno.EPERM}
        assert becomes(trust, tier, "fchmod", 0, BESIDE | mode) == {errno.EPERM}
        assert becomes(trust, tier, "fchmodat", 0, 0, mode) == {errno.EPERM}
        assert becomes(trust, tier, "fchmodat2", 0, 0, mode) == {errno.EPERM}


@pytest.mark.parametrize("trust", ["unasked", "approved"])
def test_modes_are_changed_by_commands_that_may_write(trust: CommandOrigin) -> None:
    for tier, mode in product((1, 2), (0, 0o755, 0o1777, 0o444)):
        assert becomes(trust, tier, "fchmodat", 0, 0, mode) == {ALLOWED}
    # Folders inherit the bit for groups, and are copied with it; only tier 1 has other groups to give away.
    assert becomes(trust, 2, "chmod", 0, 0o2755) == {ALLOWED}
    assert becomes(trust, 1, "chmod", 0, 0o2755) == {errno.EPERM}


@pytest.mark.parametrize("trust", ["unasked", "approved"])
@pytest.mark.parametrize("tier", [1, 2])
def test_pipes_with_names_are_made_but_no_devices(trust: CommandOrigin, tier: int) -> None:
    for kind in (0, 0o100644, 0o010600, 0o140755):
        assert becomes(trust, tier, "mknod", 0, kind) == {ALLOWED}
        assert becomes(trust, tier, "mknodat", 0, 0, kind) == {ALLOWED}
    for kind in (0o020666, 0o060666, 0o020000):
        assert becomes(trust, tier, "mknod", 0, kind) == {errno.EPERM}
        assert becomes(trust, tier, "mknodat", 0, 0, kind) == {errno.EPERM}


@pytest.mark.parametrize(
    ("weaker", "stricter"),
    [
        (("unasked", 2), ("proven", 2)),
        (("unasked", 1), ("proven", 1)),
        (("unasked", 2), ("unasked", 1)),
        (("proven", 2), ("proven", 1)),
    ],
)
def test_less_trust_or_a_lower_tier_never_allows_more(
    weaker: tuple[CommandOrigin, int], stricter: tuple[CommandOrigin, int]
) -> None:
    before, after = build_outcomes(*weaker, OWNER), build_outcomes(*stricter, OWNER)
    chance = random.Random(5)
    for name, outcome in before.items():
        values = sorted({0, 1}.union(told_apart(outcome), told_apart(after[name])))
        for _ in range(10 * len(values)):
            arguments = tuple(chance.choice(values) for _ in range(6))
            if decided(outcome, arguments) != ALLOWED:
                assert decided(after[name], arguments) != ALLOWED, (name, arguments)


def test_a_person_who_said_yes_does_not_lift_the_filter() -> None:
    for tier in (1, 2, 3):
        assert build_filter("approved", tier) == build_filter("unasked", tier)
    assert len({build_filter(trust, tier) for trust, tier in EVERY}) == 4


def test_a_filter_is_assembled_once() -> None:
    assert build_filter("proven", 2) is build_filter("proven", 2)
    assert build_filter("proven", 2) == build_filter_program(detect_machine(), build_outcomes("proven", 2, OWNER))


def test_tier_0_has_no_filter() -> None:
    with pytest.raises(ValueError, match="tier 0"):
        build_filter("proven", 0)


def test_every_call_in_the_table_is_used_by_a_filter() -> None:
    used = {name for trust, tier in EVERY for name in build_outcomes(trust, tier, OWNER)}
    assert used == set(NUMBERS)


def test_a_reading_request_opens_connections_and_no_other_sockets() -> None:
    plain, client = (build_outcomes("proven", 2, OWNER, sockets=sockets) for sockets in (False, True))
    assert {name for name in plain if plain[name] != client.get(name)} == {"socket", "connect"}
    assert "connect" not in client
    families = client["socket"]
    assert isinstance(families, ChoiceOutcome)
    assert {family for family, _ in families.cases} == {socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}
    assert build_outcomes("proven", 1, OWNER, sockets=True) == build_outcomes("proven", 1, OWNER)
