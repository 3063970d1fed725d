"""A command that has a proxy: what it sees of it, and that it reaches nothing else."""

import os
import shutil
import socket
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from namespaces import PROGRAM, Ended, World, ended
from proxied import Proxied, open_descriptors, serving, web

from handrail.protocol.errors import ToolError
from handrail.sandbox import view
from handrail.sandbox.bubblewrap import BubblewrapBackend, inspect_bubblewrap
from handrail.sandbox.proxy.handover import PLACE, PORT
from handrail.sandbox.sandbox import CommandSandbox, forget_probes

needs_bubblewrap = pytest.mark.skipif(PROGRAM is None, reason="bubblewrap is not installed")
pytestmark = needs_bubblewrap

PYTHON = os.path.realpath(sys.executable)
SHOWN = (os.path.dirname(os.path.dirname(PYTHON)),)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def asked(world: World) -> Iterator[Proxied]:
    one = Proxied(world.folder / "state" / "proxy", "example.org")
    yield one
    one.proxy.close()


def run(world: World, asked: Proxied, text: str, **changes: Any) -> Ended:
    return world.run(text, world.confinement(proxy=asked.proxy.path, listed=asked.entries, **changes))


def test_a_command_reaches_the_proxy_by_its_variables(world: World, asked: Proxied) -> None:
    done = run(world, asked, "curl -s http://evil.test/")
    assert done.out == "handrail: evil.test is not listed\n"
    assert asked.only_attempt().host == "evil.test"


@pytest.mark.parametrize("name", ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"])
def test_every_variable_that_programs_look_at_is_set(world: World, asked: Proxied, name: str) -> None:
    assert run(world, asked, f"echo ${name}").out == f"http://127.0.0.1:{PORT}\n"


def test_its_own_servers_are_reached_without_the_proxy(world: World, asked: Proxied) -> None:
    text = f"""
        {PYTHON} -m http.server --bind 127.0.0.1 8000 >server.log 2>&1 &
        until curl -sf -o /dev/null http://127.0.0.1:8000/; do kill -0 $! || exit; done
        curl -sf -o /dev/null http://localhost:8000/ && echo reached
    """
    done = world.run(text, world.confinement(proxy=asked.proxy.path, listed=asked.entries), toolchains=SHOWN)
    assert (done.out, asked.attempts) == ("reached\n", [])


def test_a_listed_loopback_address_is_this_machines(world: World, tmp_path: Path) -> None:
    with web(world.workspace) as server:
        world.write("home/projects/mine/file.txt", "from outside")
        asked = Proxied(tmp_path / "p", f"127.0.0.1:{server.server_port}")
        try:
            done = run(world, asked, f"curl -sS http://127.0.0.1:{server.server_port}/file.txt; echo $no_proxy")
        finally:
            asked.proxy.close()
    assert done.out == "from outsidelocalhost,::1\n"


def test_nothing_of_ours_runs_beside_it(world: World, asked: Proxied) -> None:
    text = "jobs; wait; echo waited $?; sleep 0.01 & wait -n; echo $?; for p in /proc/[0-9]*; do cat $p/comm; done"
    done = run(world, asked, text)
    assert done.out.split("\n")[:2] == ["waited 0", "0"]
    assert set(done.out.split("\n")[2:]) - {""} <= {"bwrap", "bash", "cat"}


def test_what_bash_says_of_a_wrong_command_is_about_that_alone(world: World, asked: Proxied) -> None:
    text = "cat; echo $0 $# $? $! $BASH_ENV $-; exec 2>&1; (exit 7) || echo $?\nif\n"
    assert run(world, asked, text)[:2] == world.run(text)[:2]


def test_the_descriptors_of_a_command_are_those_that_it_has_without(world: World, asked: Proxied) -> None:
    text = "ls /proc/self/fd; ls /proc/$$/fd; echo"
    assert run(world, asked, text).out == world.run(text).out


def test_all_else_of_the_network_is_as_empty_as_without(world: World, asked: Proxied) -> None:
    with serving(lambda connection: connection.sendall(b"REACHED")) as server:
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind(b"\0handrail-test-" + str(os.getpid()).encode())
        abstract.listen()
        host_ip = "192.0.2.1"
        text = f"""
            exec 2>/dev/null
            (exec 3<>/dev/tcp/127.0.0.1/{server.port} && echo REACHED loopback)
            (exec 3<>/dev/tcp/{host_ip}/80 && echo REACHED address)
            (exec 3<>/dev/udp/1.1.1.1/53 && echo REACHED udp)
            getent ahosts example.org && echo REACHED names
            curl -sf --noproxy '*' http://example.org/ && echo REACHED direct
            curl -sf --abstract-unix-socket handrail-test-{os.getpid()} http://x/ && echo REACHED abstract
            curl -sf -H 'Host: example.org' http://127.0.0.1:{PORT}/ && echo REACHED by Host
            curl -sf --proxy-header 'Host: example.org' -p http://evil.test/ && echo REACHED by tunnel
            ls {world.folder}/state && echo REACHED state
            echo tried
        """
        done = run(world, asked, text)
        abstract.close()
    assert done.out == "tried\n"
    assert server.visits == 0
    assert not any(attempt.allowed for attempt in asked.attempts)


def test_the_socket_cannot_be_taken_away_or_replaced_by_the_command(world: World, asked: Proxied) -> None:
    done = run(world, asked, f"rm -f {PLACE}; mv {PLACE} /tmp/x; touch /dev/other; ls {PLACE}")
    assert done.out.endswith(f"{PLACE}\n")
    assert not os.path.exists(PLACE)


def test_a_command_cannot_come_by_the_socket_itself(world: World, asked: Proxied) -> None:
    """It could hand over another port, or a descriptor that takes as long to be closed as it likes."""
    text = f"curl -sS --unix-socket {PLACE} http://evil.test/; curl -s http://evil.test/"
    done = run(world, asked, text)
    assert "Could not connect to server" in done.out or "Couldn't connect to server" in done.out
    assert done.out.endswith("handrail: evil.test is not listed\n")
    assert len(asked.attempts) == 1


def test_without_a_proxy_that_answers_the_command_is_not_begun(world: World, asked: Proxied) -> None:
    preparing = BubblewrapBackend(inspect_bubblewrap(PROGRAM or ""), world.host())
    launch = preparing.launch(world.confinement(proxy=asked.proxy.path), "echo ran")
    with socket.socket(socket.AF_UNIX) as deaf:
        asked.proxy.close()
        deaf.bind(asked.proxy.path)  # a socket that nobody listens at
        done = ended(launch)
    assert (done.out, done.code) == ("handrail: the proxy was not reached, so nothing was run\n", 125)


def test_a_python_in_a_hidden_home_is_shown_as_far_as_it_is_needed(
    world: World, asked: Proxied, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is installed in the home folder, with packages that are nobody's business."""
    folder = world.home / "python"
    library = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    program = copied_python(folder, library)
    (library / "site-packages").mkdir()
    (library / "site-packages" / "secret.py").write_text("x")
    (folder / "other.txt").write_text("x")
    monkeypatch.setattr(sys, "_base_executable", str(program))
    monkeypatch.setattr(sys, "base_prefix", str(folder))
    monkeypatch.setattr(view.os, "__file__", str(library / "os.py"))
    done = run(world, asked, f"curl -s http://evil.test/; ls {folder} {library}/site-packages; echo x >{library}/os.py")
    assert done.out.startswith("handrail: evil.test is not listed\n")
    assert "secret.py" not in done.out
    assert "other.txt" not in done.out
    assert "Read-only file system" in done.out


def copied_python(folder: Path, library: Path) -> Path:
    program = folder / "bin" / "python3"
    program.parent.mkdir(parents=True)
    shutil.copy(os.path.realpath(sys.executable), program)
    source = Path(os.__file__).parent
    shutil.copytree(source / "encodings", library / "encodings")
    shutil.copytree(source / "lib-dynload", library / "lib-dynload")
    for file in source.glob("*.py"):
        shutil.copy(file, library)
    for shared in Path(sys.base_prefix).glob("lib/libpython*.so*"):
        shutil.copy(shared, folder / "lib")
    return program


def test_in_an_environment_it_is_the_python_that_it_was_made_with(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", symlinks=True)
    program = tmp_path / "env" / "bin" / "python"
    told = "from handrail.sandbox.view import find_interpreter; print(find_interpreter())"
    done = subprocess.run(
        [program, "-c", told],
        check=False,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == view.find_interpreter(), done.stderr


def test_a_host_whose_python_is_no_program_is_told_so(
    world: World, asked: Proxied, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "_base_executable", "/usr/bin/env")
    with pytest.raises(ToolError, match="cannot be opened to a command") as caught:
        run(world, asked, "true")
    assert caught.value.code == "UNAVAILABLE"
    assert world.run("echo fine").out == "fine\n"


@pytest.mark.parametrize("most", [1, 0])
def test_a_weaker_tier_opens_no_network_and_says_what_helps(world: World, asked: Proxied, most: int) -> None:
    forget_probes()
    sandbox = CommandSandbox(world.host(), most=most)
    with pytest.raises(ToolError, match="only in sandbox tier 2") as caught:
        sandbox.launch(world.confinement(proxy=asked.proxy.path), "true")
    assert caught.value.code == "UNAVAILABLE"


def test_a_command_that_only_looks_is_given_none(world: World, asked: Proxied) -> None:
    with pytest.raises(ValueError, match="a read-only command may not open sockets"):
        world.run("true", world.proven(proxy=asked.proxy.path))


def test_a_command_without_a_proxy_sees_nothing_of_it(world: World) -> None:
    done = world.run(f"ls {PLACE}; env | grep -i prox; (exec 3<>/dev/tcp/127.0.0.1/{PORT})")
    assert "No such file" in done.out
    assert "http://" not in done.out
    assert "Connection refused" in done.out


def test_many_in_a_row_leave_no_descriptor_open(world: World, asked: Proxied) -> None:
    preparing = BubblewrapBackend(inspect_bubblewrap(PROGRAM or ""), world.host())
    confinement = world.confinement(proxy=asked.proxy.path)
    preparing.launch(confinement, "true").close()
    before = open_descriptors()
    for _ in range(20):
        preparing.launch(confinement, "true").close()
    assert open_descriptors() == before
