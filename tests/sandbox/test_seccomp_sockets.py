"""Which sockets a command may open."""

import errno
from itertools import product

import pytest
from filter_answers import BESIDE, CONFINED_BY_NAMESPACES, WITHOUT_NETWORK, becomes

from bpf_interpreter import ALLOWED
from handrail.kernel.seccomp import EVERY_BIT
from handrail.sandbox.profile import CommandOrigin

SOCKETS = "socket connect bind listen accept accept4"

UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
CLOEXEC = 0o2000000


@pytest.mark.parametrize(("trust", "tier"), CONFINED_BY_NAMESPACES)
def test_in_an_own_network_sockets_of_everyday_families_open(trust: CommandOrigin, tier: int) -> None:
    for family, kind, protocol in (
        *product((UNIX,), (1, 2, 5), (0,)),
        *product((INET, INET6), (1, 2, 1 | CLOEXEC), (0, 6, 17)),
        (NETLINK, 3 | CLOEXEC, 0),
    ):
        assert becomes(trust, tier, "socket", family, kind, protocol) == {ALLOWED}
    for kind in (1, 2, 5):
        assert becomes(trust, tier, "socketpair", UNIX, kind, 0) == {ALLOWED}
    for name in SOCKETS.split()[1:]:
        assert becomes(trust, tier, name) == {ALLOWED}


@pytest.mark.parametrize(("trust", "tier"), CONFINED_BY_NAMESPACES)
def test_in_an_own_network_all_other_families_types_and_protocols_are_refused(trust: CommandOrigin, tier: int) -> None:
    for family in {*range(64), EVERY_BIT} - {UNIX, INET, INET6, NETLINK}:
        assert becomes(trust, tier, "socket", family, 1, 0) == {errno.EAFNOSUPPORT}
        assert becomes(trust, tier, "socket", BESIDE | family, 1, 0) == {errno.EAFNOSUPPORT}
    for family in {*range(64)} - {UNIX}:
        assert becomes(trust, tier, "socketpair", family, 1, 0) == {errno.EAFNOSUPPORT}
    raw, packet = 3, 10
    for kind in {*range(16)} - {1, 2} | {raw | CLOEXEC, packet | CLOEXEC}:
        assert becomes(trust, tier, "socket", INET, kind, 0) == {errno.EPERM}
    for protocol in (33, 115, 132, 136, 256, 262):
        assert becomes(trust, tier, "socket", INET6, 1, protocol) == {errno.EPROTONOSUPPORT}
    for protocol in range(1, 32):
        assert becomes(trust, tier, "socket", NETLINK, 3, protocol) == {errno.EPROTONOSUPPORT}


@pytest.mark.parametrize(("trust", "tier"), WITHOUT_NETWORK)
def test_without_a_network_of_its_own_or_need_of_one_a_command_has_no_socket(trust: CommandOrigin, tier: int) -> None:
    for family in (*range(64), EVERY_BIT):
        assert becomes(trust, tier, "socket", family, 1, 0) == {errno.EACCES}
    for name in SOCKETS.split():
        assert becomes(trust, tier, name) == {errno.EACCES}


@pytest.mark.parametrize(("trust", "tier"), WITHOUT_NETWORK)
def test_a_pair_of_sockets_that_can_reach_nothing_else_is_left(trust: CommandOrigin, tier: int) -> None:
    for kind in (1, 5, 1 | CLOEXEC, 5 | 0o4000):
        assert becomes(trust, tier, "socketpair", UNIX, kind, 0) == {ALLOWED}
    # Raw is another word for datagrams there.
    for kind in (0, 2, 3, 2 | CLOEXEC):
        assert becomes(trust, tier, "socketpair", UNIX, kind, 0) == {errno.EPROTONOSUPPORT}
    assert becomes(trust, tier, "socketpair", INET, 1, 0) == {errno.EAFNOSUPPORT}
