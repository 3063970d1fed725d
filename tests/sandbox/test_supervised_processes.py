"""Tier 1, other processes and the network: a command reaches neither."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from supervising import PYTHON, a_host, confined, run

from handrail.kernel.landlock import read_abi_version
from handrail.sandbox.profile import CommandOrigin

pytestmark = pytest.mark.skipif(read_abi_version() < 6, reason="tier 1 gives less without Landlock's newer rights")


@pytest.fixture
def outsider() -> Iterator[subprocess.Popen[bytes]]:
    environment = {"OUTSIDER_SECRET": "secret", "PATH": os.defpath}
    with subprocess.Popen(["sleep", "300"], env=environment) as process:
        yield process
        assert process.poll() is None
        process.kill()


@pytest.mark.parametrize("trust", ["proven", "unasked", "approved"])
@pytest.mark.parametrize(
    "attempt",
    [
        "kill -9 {}",
        "kill -STOP {}",
        "kill -0 {}",
        "kill -9 -1; false",
        "cat /proc/{}/environ",
        "cat /proc/{}/maps",
        "cat /proc/{}/root/etc/hostname",
        "ls -l /proc/{}/fd/",
        "cat /proc/{}/fd/0",
        "ls /proc/{}/cwd/",
        "echo 1000 > /proc/{}/oom_score_adj",
        "renice 19 {}",
        "{python} -ISc 'import os, signal; signal.pidfd_send_signal(os.pidfd_open({}), 9)'",
        "{python} -ISc 'import ctypes; raise SystemExit(ctypes.CDLL(None).ptrace(16, {}, 0, 0) and 1)'",
        '{python} -ISc \'open("/proc/{}/mem", "rb")\'',
    ],
)
def test_an_outsider_is_out_of_reach(
    tmp_path: Path, workspace: Path, outsider: subprocess.Popen[bytes], trust: CommandOrigin, attempt: str
) -> None:
    text = attempt.replace("{python}", PYTHON).replace("{}", str(outsider.pid))
    outcome = run(confined(workspace, trust), a_host(tmp_path), text)
    assert outcome.exit_code != 0
    assert "secret" not in outcome.output
    assert outsider.poll() is None
    assert "\nState:\tS" in Path(f"/proc/{outsider.pid}/status").read_text()


def test_the_supervisor_is_out_of_reach(tmp_path: Path, workspace: Path) -> None:
    text = "kill -9 $PPID; kill -STOP $PPID; cat /proc/$PPID/environ; ls /proc/$PPID/fd/; kill -TERM 0; echo unreached"
    outcome = run(confined(workspace), a_host(tmp_path), text)
    assert outcome.status[-1] == {"exit-code": 143}


def test_what_it_started_itself_can_be_signalled(tmp_path: Path, workspace: Path) -> None:
    assert run(confined(workspace), a_host(tmp_path), "sleep 300 & kill $!; wait $!").exit_code == 143


@pytest.fixture
def listeners(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Somebody who listens on the network, at a path and at a name without one; how each is called in Python."""
    tcp, path, name = (
        socket.create_server(("127.0.0.1", 0)),
        socket.socket(socket.AF_UNIX),
        socket.socket(socket.AF_UNIX),
    )
    with tcp, path, name:
        path.bind(str(tmp_path / "workspace/socket"))
        name.bind(f"\0{tmp_path}")
        path.listen()
        name.listen()
        port = tcp.getsockname()[1]
        yield {
            "TCP": f"socket.create_connection(('127.0.0.1', {port}))",
            "path": "socket.socket(socket.AF_UNIX).connect('socket')",
            "name": f"socket.socket(socket.AF_UNIX).connect(chr(0) + '{tmp_path}')",
            "pair": "socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b'x', 'socket')",
            "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
            "UDP": "socket.socket(type=socket.SOCK_DGRAM)",
            "server": "socket.create_server(('127.0.0.1', 0))",
        }


@pytest.mark.parametrize("trust", ["proven", "unasked", "approved"])
def test_no_socket_reaches_anybody(
    tmp_path: Path, workspace: Path, listeners: dict[str, str], trust: CommandOrigin
) -> None:
    texts = {what: f'{PYTHON} -ISc "import socket; {code}"' for what, code in listeners.items()}
    for text in texts.values():
        outcome = run(confined(workspace, trust), a_host(tmp_path), text)
        assert outcome.exit_code == 1
        assert "PermissionError" in outcome.output or "rotocol not supported" in outcome.output
    # They fail because of the tier, not because nobody is there.
    assert [
        run(confined(workspace, trust), a_host(tmp_path), texts[one], 0).exit_code for one in ("TCP", "path", "name")
    ] == [
        0,
        0,
        0,
    ]


@pytest.mark.skipif(os.getuid() != 0, reason="only root has rights to lose")
def test_root_keeps_only_the_rights_to_files_of_others(tmp_path: Path, workspace: Path) -> None:
    for trust, rights in (("proven", 0b0010), ("unasked", 0b1010), ("approved", 0b1010)):
        outcome = run(confined(workspace, trust), a_host(tmp_path), "grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status")
        assert [int(line.split()[1], 16) for line in outcome.output.splitlines()] == [0, rights, rights, 0]
