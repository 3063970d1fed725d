"""The program that starts a sandbox in the network of a session: what becomes of bubblewrap's option."""

import os
import subprocess
import sys
import tempfile

import pytest

from handrail.sandbox import session_network
from handrail.sandbox.session_network import NEW_NETWORK, OWN_NETWORK_OPTION, wrap_in_network

ECHO = ("/bin/echo", OWN_NETWORK_OPTION, OWN_NETWORK_OPTION)


def run(*before: str, network: int = NEW_NETWORK, inherited: tuple[int, ...] = ()) -> str:
    argv = [*before, *wrap_in_network(ECHO, network)]
    return subprocess.run(argv, pass_fds=inherited, capture_output=True, text=True, timeout=60, check=True).stdout


def can_make_namespaces() -> bool:
    return subprocess.run(["unshare", "-Urn", "true"], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not can_make_namespaces(), reason="no namespaces here")


def test_in_a_new_network_bubblewrap_makes_none() -> None:
    assert run() == f"--share-net {OWN_NETWORK_OPTION}\n"  # the first only: the command may hold the same word


def test_without_the_network_bubblewrap_makes_one() -> None:
    with tempfile.TemporaryFile() as file:  # not a namespace
        assert run(network=file.fileno(), inherited=(file.fileno(),)) == f"{OWN_NETWORK_OPTION} {OWN_NETWORK_OPTION}\n"


def test_where_no_network_can_be_made_bubblewrap_tries_by_itself() -> None:
    no_more = 'echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"'
    assert run("unshare", "-Ur", "sh", "-c", no_more, "sh") == f"{OWN_NETWORK_OPTION} {OWN_NETWORK_OPTION}\n"


def test_a_network_is_entered_and_its_descriptor_closed() -> None:
    with subprocess.Popen(
        ["unshare", "-Urn", "sh", "-c", "echo; read _"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        network = os.open(f"/proc/{other.pid}/ns/net", os.O_RDONLY)
        try:
            wanted = os.readlink(f"/proc/self/fd/{network}")
            look = "readlink /proc/self/ns/net; ls /proc/self/fd | wc -l"
            argv = wrap_in_network(("/bin/sh", "-c", look, OWN_NETWORK_OPTION), network)
            seen = subprocess.run(
                argv, pass_fds=(network,), capture_output=True, text=True, timeout=60, check=True
            ).stdout
            assert seen.split() == [wanted, "4"]
        finally:
            os.close(network)
            other.communicate(b"\n")


def test_the_program_is_started_by_this_interpreter_alone() -> None:
    program = os.path.abspath(session_network.__file__)
    assert wrap_in_network(ECHO, 7) == (sys.executable, "-I", "-S", program, "7", *ECHO)
