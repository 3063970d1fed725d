"""Other people's agents, with the file that `handrail mcp --config` writes for them and a model that is a script."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from real_hosts import HOSTS, Host, Model, prepare

import handrail
import oracles
from handrail.protocol.tool_spec import BASE_NAMES

_SOURCE = Path(handrail.__file__).parent.parent
PATIENCE = 180


@pytest.fixture(scope="module")
def programs() -> oracles.Packages:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("they are installed for Linux on x86-64")
    try:
        return oracles.installed(oracles.HOSTS)
    except oracles.NotReachableError as unreachable:
        pytest.skip(f"the npm registry cannot be reached: {unreachable}")


def _installed(folder: Path) -> str:
    """A PATH with our program on it. Hosts pass on hardly any variables, so it says itself where it is."""
    program = folder / "bin" / "handrail"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={_SOURCE} exec {sys.executable} -m handrail "$@"\n')
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def _working_in(folder: Path) -> list[str]:
    """The processes that are there."""
    found: list[str] = []
    for one in Path("/proc").iterdir():
        try:
            if one.name.isdigit() and (one / "cwd").readlink() == folder:
                found.append((one / "cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.mark.parametrize("host", HOSTS, ids=[one.name for one in HOSTS])
def test_a_host_has_our_tools_and_not_its_own_and_its_model_reads_what_they_say(
    request: pytest.FixtureRequest, tmp_path: Path, host: Host, deep: bool
) -> None:
    if not deep:
        pytest.skip("in a deep run")
    programs: oracles.Packages = request.getfixturevalue("programs")
    home, workspace = tmp_path / "home", tmp_path / "shop"
    home.mkdir()
    workspace.mkdir()
    (workspace / "a.txt").write_text("".join(f'"{number}"\n' for number in range(3)))
    model = Model(host, [("read", {"path": "a.txt", "limit": 2})], [("exec", {"command": "cat a.txt no"})])
    told = {"PATH": _installed(tmp_path), "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb"}
    told |= prepare(host, home, workspace, model)
    place = {"cwd": workspace, "env": told, "stdin": subprocess.DEVNULL, "timeout": PATIENCE}
    subprocess.run(["handrail", "mcp", "--config", host.name, "--write"], check=True, **place)
    subprocess.run([programs.modules / host.program, *host.words], check=True, **place)
    model.close()
    offered = host.offered(model.questions[0])
    assert {host.called.format(name) for name in BASE_NAMES} <= offered
    assert offered & host.off == set()
    assert host.results(model.questions[-1]) == [
        '"0"\n"1"\n[Read lines 1–2 of 3 of a.txt. Continue with offset 3.]\n',
        '"0"\n"1"\n"2"\ncat: no: No such file or directory\n[exit code 1]\n',
    ]
    assert _working_in(workspace) == []
