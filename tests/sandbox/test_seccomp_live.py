"""The filters of commands, taken by the running kernel: what is refused fails with its error, what is allowed works."""

import errno
import json
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import handrail
from handrail.kernel.seccomp import RefuseOutcome
from handrail.kernel.syscall_numbers import UnknownMachineError, detect_machine
from handrail.sandbox.profile import CommandOrigin
from handrail.sandbox.seccomp_rules import Owner, build_filter, build_outcomes

try:
    MACHINE = detect_machine()
except UnknownMachineError:
    pytest.skip("no table of system calls for this machine", allow_module_level=True)

BEGIN = f"""
import ctypes, errno, json, os, socket, sys
sys.path.insert(0, {str(Path(handrail.__file__).parents[1])!r})
from handrail.kernel.process import filter_system_calls, refuse_new_privileges
from handrail.kernel.syscall_numbers import detect_machine
number = detect_machine().number
libc = ctypes.CDLL(None, use_errno=True)
def error_of(name, *arguments):
    ctypes.set_errno(0)
    libc.syscall(ctypes.c_long(number(name)), *map(ctypes.c_long, arguments))
    return ctypes.get_errno()
def attempt(action):
    try:
        action()
    except OSError as error:
        return error.errno
    return 0
"""
FOUR = tuple(product(("proven", "unasked"), (1, 2)))
WITHOUT_NETWORK = (("proven", 1), ("proven", 2), ("unasked", 1))


def told(trust: CommandOrigin, tier: int, script: str, *arguments: str) -> Any:
    """What the script prints as JSON: `told` of it, after the filter was installed."""
    install = f"refuse_new_privileges()\nfilter_system_calls({build_filter(trust, tier)!r})"
    whole = f"{BEGIN}\n{install}\n{script}\nprint(json.dumps(told))"
    command = [sys.executable, "-I", "-c", whole, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("trust", "tier"), FOUR)
def test_each_refused_call_fails_with_its_error(trust: CommandOrigin, tier: int) -> None:
    outcomes = build_outcomes(trust, tier, Owner(0, 0))
    expected = {
        name: outcome.errno
        for name, outcome in outcomes.items()
        if isinstance(outcome, RefuseOutcome) and MACHINE.number(name) is not None
    }
    # Nothing would come of these calls with such arguments if they were made.
    script = "told = {name: error_of(name, -1, -1, -1, -1, -1, -1) for name in sys.argv[1:]}"
    assert told(trust, tier, script, *expected) == expected
    assert len(expected) > 40


@pytest.mark.parametrize(("trust", "tier"), FOUR)
def test_namespaces_are_refused_and_open_files_may_be_unshared(trust: CommandOrigin, tier: int) -> None:
    script = """
user, files, fork = 0x10000000, 0x400, 17
told = [error_of("clone", user | fork), error_of("unshare", user), error_of("unshare", files)]
"""
    assert told(trust, tier, script) == [errno.EPERM, errno.EPERM, 0]


@pytest.mark.parametrize(("trust", "tier"), FOUR)
def test_threads_and_processes_of_every_make_work(trust: CommandOrigin, tier: int) -> None:
    script = """
import asyncio, concurrent.futures, multiprocessing, subprocess, threading
told = []
thread = threading.Thread(target=told.append, args=("thread",))
thread.start()
thread.join()
if not (child := os.fork()):
    os._exit(7)
told.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
spawned = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 8"], {})
told.append(os.waitstatus_to_exitcode(os.waitpid(spawned, 0)[1]))
told.append(subprocess.run(["/bin/sh", "-c", "exit 9"]).returncode)
async def piped():
    process = await asyncio.create_subprocess_exec("/bin/echo", "asked", stdout=subprocess.PIPE)
    return (await process.communicate())[0].decode()
told.append(asyncio.run(piped()))
with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
    told.append(list(pool.map(abs, (-1, -2))))
"""
    assert told(trust, tier, script) == ["thread", 7, 8, 9, "asked\n", [1, 2]]


@pytest.mark.parametrize(("trust", "tier"), WITHOUT_NETWORK)
def test_without_a_network_only_pairs_of_connected_sockets_are_made(trust: CommandOrigin, tier: int) -> None:
    script = """
families = (1, 2, 10, 16, 17, 38, 40)
told = [attempt(lambda family=family: socket.socket(family, socket.SOCK_STREAM)) for family in families]
one, other = socket.socketpair()
one.send(b"across")
told.append(other.recv(9).decode())
told.append(attempt(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)))
"""
    assert told(trust, tier, script) == [errno.EACCES] * 7 + ["across", errno.EPROTONOSUPPORT]


def test_in_an_own_network_servers_answer_and_odd_families_do_not_exist() -> None:
    script = """
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
server.accept()[0].send(b"over")
told = [client.recv(9).decode(), len(socket.if_nameindex()) > 0]
told += [attempt(lambda family=family: socket.socket(family, socket.SOCK_RAW)) for family in (17, 38, 40, 31)]
told.append(attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)))
"""
    odd = [errno.EAFNOSUPPORT] * 4
    assert told("unasked", 2, script) == ["over", True, *odd, errno.EPROTONOSUPPORT]


@pytest.mark.parametrize("tier", [1, 2])
def test_a_command_that_writes_changes_modes_and_times_but_sets_no_bit_to_run_as_owner(
    tier: int, tmp_path: Path
) -> None:
    script = """
os.chdir(sys.argv[1])
open("file", "w").close()
told = [attempt(lambda: os.chmod("file", 0o755)), attempt(lambda: os.utime("file", (1, 1)))]
told += [attempt(lambda: os.mkfifo("pipe")), attempt(lambda: os.chown("file", os.geteuid(), -1))]
told += [attempt(lambda: os.chmod("file", 0o4755)), attempt(lambda: os.mknod("device", 0o20600, 0))]
"""
    assert told("unasked", tier, script, str(tmp_path)) == [0, 0, 0, 0, errno.EPERM, errno.EPERM]
    assert (tmp_path / "file").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("tier", [1, 2])
def test_a_command_that_only_looks_has_temporary_files_but_changes_nothing_about_them(
    tier: int, tmp_path: Path
) -> None:
    script = """
import tempfile
os.chdir(sys.argv[1])
with tempfile.NamedTemporaryFile(dir=".") as file:
    file.write(b"12345")
    file.truncate(3)
    told = [os.stat(file.name).st_size]
    told += [attempt(lambda: os.chmod(file.name, 0o600)), attempt(lambda: os.utime(file.name))]
    told += [attempt(lambda: os.chown(file.name, -1, -1)), attempt(lambda: os.setxattr(file.name, "user.a", b"b"))]
"""
    assert told("proven", tier, script, str(tmp_path)) == [3] + [errno.EPERM] * 4
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("trust", "tier"), FOUR)
def test_nothing_is_typed_into_a_terminal_that_works_otherwise(trust: CommandOrigin, tier: int) -> None:
    script = """
import fcntl, pty, termios
outer, inner = pty.openpty()
told = [attempt(lambda: fcntl.ioctl(inner, request, b"x")) for request in (termios.TIOCSTI, 0x541C, termios.TIOCSETD)]
told.append(len(termios.tcgetattr(inner)))
"""
    assert told(trust, tier, script) == [errno.EPERM] * 3 + [7]


def test_without_namespaces_a_process_changes_its_own_limits_and_turns_only() -> None:
    script = """
import resource
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
parent = os.getppid()
told = [attempt(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits)), attempt(lambda: os.nice(0))]
told += [attempt(lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))]
told += [attempt(lambda: resource.prlimit(parent, resource.RLIMIT_NOFILE, limits))]
told += [attempt(lambda: os.setpriority(os.PRIO_PROCESS, parent, 0)), attempt(lambda: os.kill(-1, 0))]
told += [attempt(lambda: os.sched_setaffinity(parent, os.sched_getaffinity(0)))]
"""
    assert told("unasked", 1, script) == [0, 0, 0] + [errno.EPERM] * 4
