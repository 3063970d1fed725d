"""The sandbox: which tier is in use, what it says of itself, what it refuses."""

import os
import subprocess
from pathlib import Path

import pytest
from namespaces import PROGRAM, World, ended

from handrail.protocol.errors import ToolError
from handrail.sandbox.bubblewrap import Bubblewrap, inspect_bubblewrap
from handrail.sandbox.environment import MAX_ARGUMENT_BYTES
from handrail.sandbox.sandbox import CommandSandbox, forget_probes

needs_bubblewrap = pytest.mark.skipif(PROGRAM is None, reason="bubblewrap is not installed")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    forget_probes()


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.sandbox.bubblewrap.SYSTEM_PROGRAMS", ())


@needs_bubblewrap
def test_the_best_tier_is_in_use_and_runs_commands(world: World) -> None:
    sandbox = CommandSandbox(world.host())
    assert sandbox.tier == 2
    assert ended(sandbox.launch(world.confinement(), "echo hello")).out == "hello\n"
    report = sandbox.report()
    assert (report.tier, report.failures) == (2, ())
    assert report.means.startswith("bubblewrap 0.")
    assert set(report.tree) & set(report.per_process) == set()


@needs_bubblewrap
def test_one_time_out_of_bubblewrap_leads_to_no_weaker_tier(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = [subprocess.TimeoutExpired("bwrap", 10)]

    def inspect(path: str) -> Bubblewrap:
        if slow:
            raise slow.pop()
        return inspect_bubblewrap(path)

    monkeypatch.setattr("handrail.sandbox.sandbox.inspect_bubblewrap", inspect)
    assert CommandSandbox(world.host()).tier == 2
    assert not slow


@pytest.mark.parametrize("most", [1, 0])
def test_a_tier_can_be_asked_for(world: World, most: int) -> None:
    sandbox = CommandSandbox(world.host(), most=most)
    assert sandbox.tier <= most
    launch = sandbox.launch(world.confinement(), "echo hello; exit 3")
    assert launch.tier == sandbox.tier
    done = ended(launch)
    assert (done.out, '"exit-code": 3' in done.status) == ("hello\n", True)
    assert sandbox.report().gaps != ()


def test_without_bubblewrap_a_weaker_tier_is_in_use_and_says_why(world: World, no_bubblewrap: None) -> None:
    sandbox = CommandSandbox(world.host(environ={"PATH": "/nowhere"}))
    assert sandbox.tier < 2
    [failure, *_] = sandbox.report().failures
    assert (failure.tier, failure.reason) == (2, "bubblewrap (bwrap) is not installed")
    assert sandbox.report().gaps != ()


def test_a_bubblewrap_that_confines_nothing_is_not_used(world: World, no_bubblewrap: None) -> None:
    """One that is like it in name only: it runs the command as it is."""
    fake = world.write("bin/bwrap", '#!/bin/bash\nwhile [ $# -gt 0 -a "$1" != -- ]; do shift; done; shift; exec "$@"\n')
    fake.chmod(0o755)
    sandbox = CommandSandbox(world.host(environ={"PATH": f"{fake.parent}:/usr/bin:/bin"}))
    assert sandbox.tier < 2
    assert "bubblewrap" in sandbox.report().failures[0].reason or "container" in sandbox.report().failures[0].reason


@needs_bubblewrap
def test_a_bubblewrap_that_cannot_close_user_namespaces_is_used_without(world: World, no_bubblewrap: None) -> None:
    """As where AppArmor guards it."""
    told = "tr '\\0' '\\n' </proc/self/fd/$2"
    guarded = world.write(
        "bin/bwrap",
        f'#!/bin/bash\n[ $1 = --args ] && {told} | grep -qx -- --disable-userns && exit 1\nexec {PROGRAM} "$@"\n',
    )
    guarded.chmod(0o755)
    sandbox = CommandSandbox(world.host(environ={"PATH": f"{guarded.parent}:/usr/bin:/bin"}))
    assert sandbox.tier == 2
    assert ended(sandbox.launch(world.confinement(), "echo hello; unshare -U true || echo refused")).out.endswith(
        "refused\n"
    )


def test_below_the_least_tier_nothing_is_run(world: World, no_bubblewrap: None) -> None:
    sandbox = CommandSandbox(world.host(environ={"PATH": "/nowhere"}), least=2)
    with pytest.raises(ToolError) as caught:
        sandbox.launch(world.confinement(), "true")
    assert caught.value.code == "SANDBOX_UNAVAILABLE"
    assert "tier 2: bubblewrap (bwrap) is not installed" in caught.value.message


def test_asking_for_less_than_the_least_runs_nothing(world: World) -> None:
    with pytest.raises(ToolError, match="settings allow no better one"):
        CommandSandbox(world.host(), most=0, least=1).launch(world.confinement(), "true")


@needs_bubblewrap
def test_what_was_found_out_is_kept_until_it_is_forgotten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    monkeypatch.setattr("handrail.sandbox.sandbox.probe_tier", lambda *_, **__: looks.append("looked"))
    for _ in range(3):
        assert CommandSandbox(world.host()).tier == 2
    assert looks == ["looked"]
    sandbox = CommandSandbox(world.host())
    error = sandbox.explain_failure("bwrap: Creating new namespace failed: No space left on device\n")
    assert error.code == "SANDBOX_UNAVAILABLE"
    assert "No space left on device" in error.message
    assert sandbox.tier == 2
    assert looks == ["looked"] * 2


def test_a_bubblewrap_that_has_vanished_is_no_longer_used(world: World, no_bubblewrap: None) -> None:
    if PROGRAM is None:
        pytest.skip("bubblewrap is not installed")
    copy = world.write("bin/bwrap")
    copy.write_bytes(Path(PROGRAM).read_bytes())
    copy.chmod(0o755)
    sandbox = CommandSandbox(world.host(environ={"PATH": str(copy.parent)}))
    if sandbox.tier < 2:
        pytest.skip("only the system's own bubblewrap works here")
    copy.unlink()
    assert sandbox.tier < 2
    assert sandbox.report().failures[0].reason == "bubblewrap (bwrap) is not installed"


@pytest.mark.parametrize(
    ("text", "code"),
    [("a\0b", "INVALID_ARGUMENT"), ("\ud800", "INVALID_ARGUMENT"), ("x" * (1 << 20), "LIMIT_EXCEEDED")],
    ids=["NUL", "The command has an incomplete character.", "a megabyte"],
)
@pytest.mark.parametrize("most", [3, 1, 0])
def test_a_text_that_no_shell_takes_is_refused(world: World, text: str, code: str, most: int) -> None:
    with pytest.raises(ToolError) as caught:
        CommandSandbox(world.host(), most=most).launch(world.confinement(), text)
    assert caught.value.code == code


@needs_bubblewrap
def test_the_longest_text_runs(world: World) -> None:
    text = "echo hello #".ljust(MAX_ARGUMENT_BYTES, "x")
    assert ended(CommandSandbox(world.host()).launch(world.confinement(), text)).out == "hello\n"


@needs_bubblewrap
def test_starting_and_closing_many_leaves_no_descriptor_open(world: World) -> None:
    sandbox = CommandSandbox(world.host())
    sandbox.launch(world.confinement(), "true").close()
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(20):
        sandbox.launch(world.confinement(), "true").close()
    assert set(os.listdir("/proc/self/fd")) == before


@needs_bubblewrap
def test_a_toolchain_that_is_installed_meanwhile_is_seen_after_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = CommandSandbox(world.host())
    text = "cat ~/.nvm/node 2>/dev/null"
    assert ended(sandbox.launch(world.confinement(), text)).out == ""
    world.write("home/.nvm/node", "tool")
    monkeypatch.setattr("handrail.sandbox.view._SECONDS_TO_KEEP", -1.0)
    forget_probes()
    from handrail.sandbox import view

    view._cached_views.clear()
    assert ended(sandbox.launch(world.confinement(), text)).out == "tool"
