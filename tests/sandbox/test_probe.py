"""The probe: it finds a sandbox that does not confine, whatever it lets through."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from namespaces import PROGRAM, World

from apart import environment_in
from handrail.kernel.procfs import list_processes
from handrail.protocol.errors import ToolError
from handrail.sandbox.bubblewrap import BubblewrapBackend, inspect_bubblewrap, launch_namespaced
from handrail.sandbox.launch import Launch
from handrail.sandbox.probe import probe_tier
from handrail.sandbox.profile import SandboxHost, SandboxProfile

EXPECTED = {"NoNewPrivs": "1", "Seccomp": "2", "CapEff": "0" * 16}
needs_bubblewrap = pytest.mark.skipif(PROGRAM is None, reason="bubblewrap is not installed")


@pytest.fixture
def host(tmp_path: Path) -> SandboxHost:
    return World(tmp_path).host()


def changed(*changes: tuple[bytes, bytes]):
    """Tier 2, told something else."""

    def start(confinement: SandboxProfile, host: SandboxHost, text: str) -> Launch:
        prepared = BubblewrapBackend(inspect_bubblewrap(PROGRAM or ""), host).prepare(confinement)
        for old, new in changes:
            assert old in prepared.arguments
            prepared = prepared._replace(arguments=prepared.arguments.replace(old, new))
        return launch_namespaced(prepared, text)

    return start


def unconfined(program: tuple[str, ...]):
    def start(confinement: SandboxProfile, host: SandboxHost, text: str) -> Launch:
        status, status_end = os.pipe()
        lifeline_end, lifeline = os.pipe()
        return Launch(
            tier=2,
            argv=(*program, "-c", f"cd {confinement.cwd}; ulimit -f 7168; {text}"),
            environment={"PATH": "/usr/bin:/bin"},
            inherited=(status_end, lifeline_end),
            status=status,
            lifeline=lifeline,
            own_processes=False,
        )

    return start


@needs_bubblewrap
def test_tier_2_holds_no_surprise(host: SandboxHost) -> None:
    assert probe_tier(changed(), host, expected=EXPECTED) is None


@needs_bubblewrap
@pytest.mark.parametrize(
    ("change", "found"),
    [
        ([(b"--unshare-all\0", b"--unshare-pid\0--unshare-uts\0")], "a command can reach the network"),
        ([(b"--unshare-all\0", b"--unshare-pid\0--unshare-uts\0--unshare-nothing\0")], "bwrap: Unknown option"),
        ([(b"--dev\0/dev\0", b"--ro-bind\0/nowhere\0/nowhere\0")], "bwrap: Can't find source path"),
        ([(b"--proc\0/proc\0", b"--dir\0/proc\0")], "the limits of a command do not hold"),
    ],
    ids=["network", "unknown option", "no folder", "no guard"],
)
def test_a_tier_that_is_made_otherwise_is_found_out(
    host: SandboxHost, change: list[tuple[bytes, bytes]], found: str
) -> None:
    assert found in (probe_tier(changed(*change), host, expected=EXPECTED) or "")


@needs_bubblewrap
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to keep")
def test_capabilities_that_are_left_to_root_are_found_out(host: SandboxHost) -> None:
    found = probe_tier(changed((b"--cap-drop\0ALL\0", b"")), host, expected=EXPECTED)
    assert found == f"a command does not run with CapEff {'0' * 16}"


@needs_bubblewrap
@pytest.mark.parametrize(
    ("place", "kind", "found"),
    [
        ("looked", b"--bind", "a command can change a read-only folder"),
        ("outside", b"--bind", "a command can change a file outside the workspace"),
        ("outside", b"--ro-bind", "a command can read what is hidden from it"),
        ("home", b"--ro-bind", "a command can read what is hidden from it"),
    ],
)
def test_a_folder_that_is_shown_by_mistake_is_found_out(host: SandboxHost, place: str, kind: bytes, found: str) -> None:
    def start(confinement: SandboxProfile, host: SandboxHost, text: str) -> Launch:
        folder = os.fsencode(os.path.join(os.path.dirname(confinement.cwd), place))
        shown = b"%b\0%b\0%b\0--remount-ro\0/\0" % (kind, folder, folder)
        return changed((b"--remount-ro\0/\0", shown))(confinement, host, text)

    assert probe_tier(start, host, expected=EXPECTED) == found


def test_a_shell_without_a_sandbox_is_found_out(host: SandboxHost) -> None:
    found = probe_tier(unconfined((shutil.which("bash") or "bash",)), host, expected=EXPECTED)
    assert found == "a command can change a read-only folder"


def test_what_does_not_start_or_says_nothing_is_found_out(host: SandboxHost) -> None:
    assert "its test failed:" in (probe_tier(unconfined(("/nowhere/bash",)), host, expected=EXPECTED) or "")
    assert probe_tier(unconfined(("/bin/true",)), host, expected=EXPECTED) == "it ended without an answer"


def test_a_tier_that_refuses_is_found_out(host: SandboxHost) -> None:
    def start(*_: object) -> Launch:
        raise ToolError("SANDBOX_UNAVAILABLE", "not on this machine")

    assert probe_tier(start, host, expected=EXPECTED) == "its test failed: not on this machine"


@needs_bubblewrap
def test_the_probe_leaves_nothing_behind(host: SandboxHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    before, children = set(os.listdir("/proc/self/fd")), list_children()
    assert probe_tier(changed(), host, expected=EXPECTED) is None
    assert os.listdir(tmp_path / "temporary") == []
    assert set(os.listdir("/proc/self/fd")) == before
    assert not Path(host.state).exists()
    assert list_children() <= children


def list_children() -> set[int]:
    """The processes of this one, also those that have ended. Other tests may have some."""
    return {one.number for one in list_processes() if one.parent == os.getpid()}


HOLDS = """
import sys
from handrail.store.state_dir import make_temporary_folder
with make_temporary_folder("handrail-probe-") as folder:
    print(folder, flush=True)
    sys.stdin.readline()
"""


def test_what_a_killed_probe_left_goes_with_the_next_one_and_a_live_one_stays(tmp_path: Path) -> None:
    environment = environment_in(tmp_path, TMPDIR=str(tmp_path))
    command = [sys.executable, "-c", HOLDS]
    with (
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as killed,
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as alive,
    ):
        assert killed.stdout is not None
        assert alive.stdout is not None
        left, kept = (Path(one.stdout.readline().decode().strip()) for one in (killed, alive))
        (left / "inside").mkdir()
        killed.kill()
        killed.wait()
        assert sorted(tmp_path.glob("handrail-probe-*")) == sorted((left, kept))
        subprocess.run(command, env=environment, input=b"\n", capture_output=True, check=True)
        assert list(tmp_path.glob("handrail-probe-*")) == [kept]
        alive.communicate(b"\n")
    assert not list(tmp_path.glob("handrail-probe-*"))


@needs_bubblewrap
@pytest.mark.parametrize(
    ("seconds", "found"),
    [((0.0, 20.0), None), ((0.0, 0.0), "its test failed: Command")],
    ids=["once", "twice"],
)
def test_a_probe_that_times_out_is_repeated_once(
    host: SandboxHost, monkeypatch: pytest.MonkeyPatch, seconds: tuple[float, ...], found: str | None
) -> None:
    left = list(seconds)

    def start(confinement: SandboxProfile, host: SandboxHost, text: str) -> Launch:
        monkeypatch.setattr("handrail.sandbox.probe._PROBE_SECONDS", left.pop(0))
        return changed()(confinement, host, text)

    fault = probe_tier(start, host, expected=EXPECTED)
    assert fault is None if found is None else (fault or "").startswith(found)
    assert not left


def test_a_refusal_is_not_repeated(host: SandboxHost) -> None:
    attempts: list[str] = []

    def start(*_: object) -> Launch:
        attempts.append("tried")
        raise ToolError("SANDBOX_UNAVAILABLE", "not on this machine")

    assert probe_tier(start, host, expected=EXPECTED)
    assert attempts == ["tried"]
