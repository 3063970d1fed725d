"""doctor on the sandbox: the tier in use, what would be better, and nothing is changed."""

import os
from pathlib import Path

import pytest

from handrail.sandbox.bubblewrap import find_bubblewrap
from handrail.sandbox.sandbox import forget_probes


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    forget_probes()


def sandbox_rows(done) -> list[dict]:
    return [row for row in done.json["rows"] if row["group"] == "sandbox"]


@pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed")
def test_the_tier_in_use_is_named_and_what_the_kernel_offers(here, state: Path) -> None:
    rows = sandbox_rows(here("doctor", "--json"))
    assert rows[0]["text"].startswith("tier 3: commands are confined by bubblewrap 0.")
    assert rows[0]["text"].endswith(" in an overlay over the workspace")
    assert {row["status"] for row in rows} == {"ok"}
    assert [row["text"].partition(":")[0] for row in rows[1:]] == ["Landlock", "cgroups"]
    assert not state.exists()


def test_a_missing_bubblewrap_is_a_warning_with_what_to_type(here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.sandbox.bubblewrap.SYSTEM_PROGRAMS", ())
    monkeypatch.setattr("shutil.which", lambda name, **_: name if name == "apt-get" else None)
    done = here("doctor", "--json", PATH="/nowhere")
    [missing] = [row for row in sandbox_rows(done) if row["text"].startswith("tier 2")]
    assert (missing["status"], missing["text"]) == (
        "warning",
        "tier 2 does not work: bubblewrap (bwrap) is not installed",
    )
    assert missing["fix"].endswith("apt-get install bubblewrap")
    assert done.code == 0


@pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed")
def test_why_there_is_no_layer_is_a_row_and_so_is_that_settings_ask_for_one(
    here, config, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.sandbox.overlay.overlay._FOLDERS", ())
    [first, why, *_] = sandbox_rows(here("doctor", "--json"))
    assert (first["status"], first["text"][:7]) == ("ok", "tier 2:")
    expected = "tier 3 has no overlay here: the programs unshare and mount (of util-linux) are not installed"
    assert (why["status"], why["text"]) == ("warning", expected)
    config("[sandbox]\nleast = 3\n")
    [first, *_] = sandbox_rows(here("doctor", "--json"))
    assert first["status"] == "error"
    assert "settings ask for tier 3 at least, so no command that may change files runs" in first["text"]


def test_settings_that_ask_for_more_than_there_is_are_exit_1(here, config) -> None:
    config("[sandbox]\ntier = 0\nleast = 1\n")
    done = here("doctor", "--json")
    rows = sandbox_rows(done)
    assert (done.code, rows[0]["status"], rows[0]["fix"]) == (1, "error", "handrail config")
    assert "settings ask for tier 1 at least, so no command runs" in rows[0]["text"]


def network_row(done) -> tuple[str, str]:
    [row] = [row for row in done.json["rows"] if row["group"] == "network"]
    return row["status"], row["text"]


@pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed")
def test_what_of_the_network_is_open_is_a_row(here, config) -> None:
    nothing = "commands have no network; each approval lists the hosts it opens"
    assert network_row(here("doctor", "--json")) == ("ok", nothing)
    config('network.allow = ["example.net:443", "files.example.net:443"]\n')
    listed = "network.allow opens these hosts to commands that may write: 2 entries"
    assert network_row(here("doctor", "--json")) == ("ok", listed)
    config('network.allow = ["example.net:443"]\ntools.deny = ["net.connect"]\n')
    closed = "closed to commands and servers: [tools] deny lists net.connect"
    assert network_row(here("doctor", "--json")) == ("ok", closed)


def test_the_network_of_a_weaker_sandbox_is_told(here, config) -> None:
    config("sandbox.tier = 0\n")
    status, text = network_row(here("doctor", "--json"))
    assert (status, "reach every host" in text) == ("warning", True)
    config('sandbox.tier = 1\nnetwork.allow = ["example.net:443"]\n')
    status, text = network_row(here("doctor", "--json"))
    if "sandbox tier 2" not in text:
        pytest.skip("Landlock does not work here")
    assert (status, text.endswith("; network.allow has 1 entry, which open nothing")) == ("warning", True)
    config("sandbox.tier = 1\n")
    assert network_row(here("doctor", "--json"))[0] == "ok"


def test_a_toolchain_that_is_not_there_is_a_warning(here, config, environment: dict[str, str]) -> None:
    config("[sandbox]\ntoolchains = ['~/gone']\n")
    [row] = [row for row in sandbox_rows(here("doctor", "--json")) if row["status"] == "warning"]
    assert (row["text"], row["fix"]) == ("the toolchain ~/gone is not shown: it does not exist", "handrail config")
    assert environment["HOME"] not in row["text"]


def test_a_variable_that_is_kept_back_for_its_value_is_a_warning_without_the_value(here, config) -> None:
    config("[sandbox]\nenvironment = ['BUILD_TARGET']\n")
    rows = sandbox_rows(here("doctor", "--json", BUILD_TARGET="ghp_abcdefghijklmnop1234"))
    [row] = [row for row in rows if row["status"] == "warning"]
    assert row["text"] == "the variable BUILD_TARGET is not passed to commands: it looks like a secret"
