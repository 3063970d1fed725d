"""doctor: finds what is wrong, says what to type, touches nothing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GROUPS = ["containment", "state", "search", "sandbox", "network", "config", "models", "clients", "python"]


def rows(done) -> dict[str, tuple[str, str]]:
    """Of each text its status and its fix."""
    return {row["text"]: (row["status"], row["fix"]) for row in done.json["rows"]}


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"") for path in folder.rglob("*")
    }


def test_a_new_place_is_fine_and_stays_new(here, state: Path) -> None:
    done = here("doctor")
    assert (done.code, done.err) == (0, "")
    assert [line for line in done.out.splitlines() if not line.startswith(" ")][:-2] == GROUPS
    assert "  ✓ $HANDRAIL_STATE_DIR does not exist yet; the first call creates it\n" in done.out
    assert f"  ✓ cpython {sys.version_info.major}.{sys.version_info.minor}." in done.out
    assert not state.exists()


def test_a_used_place_is_fine_and_nothing_in_it_changes(here, state: Path) -> None:
    here("call", "ls", '{"path": "."}')
    before = contents(state)
    done = here("doctor", "--json")
    assert (done.code, done.json["schema"], done.json["ok"]) == (0, "handrail.doctor/1", True)
    assert rows(done)["$HANDRAIL_STATE_DIR is private to its owner"] == ("ok", None)
    assert rows(done)["audit: 1 record intact"] == ("ok", None)
    assert contents(state) == before


def test_every_row_that_is_not_ok_says_what_to_type(here, state: Path, config) -> None:
    state.write_text("")
    config("mode = 3\n")
    done = here("doctor", "--json", PATH="/nowhere")
    bad = [row for row in done.json["rows"] if row["status"] != "ok" and row["group"] != "sandbox"]
    assert len(bad) == 2
    assert all(row["fix"] for row in bad)
    shown = here("doctor", PATH="/nowhere").out
    assert "  ✗ $HANDRAIL_STATE_DIR is not a folder\n      → mv " in shown


def test_search_says_which_engine_and_which_version(here, tmp_path: Path) -> None:
    [found] = [row for row in here("doctor", "--json").json["rows"] if row["group"] == "search"]
    assert found["status"] == "ok"
    assert found["text"].startswith("ripgrep: ripgrep 1")
    assert found["text"].endswith("/rg")
    broken = tmp_path / "bin" / "rg"
    broken.parent.mkdir()
    broken.write_text("#!/nowhere\n")
    broken.chmod(0o755)
    [row] = [row for row in here("doctor", "--json", PATH=str(broken.parent)).json["rows"] if row["group"] == "search"]
    assert (row["status"], row["text"]) == ("error", f"ripgrep at {broken} does not run")


def test_a_file_in_the_way_of_the_state_folder_is_exit_1(here, state: Path) -> None:
    state.write_text("")
    done = here("doctor", "--json")
    assert (done.code, done.json["ok"]) == (1, False)
    fix = "mv $HANDRAIL_STATE_DIR $HANDRAIL_STATE_DIR.old"
    assert rows(done)["$HANDRAIL_STATE_DIR is not a folder"] == ("error", fix)


def test_a_state_folder_that_cannot_be_made_is_exit_1(here, state: Path) -> None:
    state.write_text("")
    done = here("doctor", "--json", HANDRAIL_STATE_DIR=str(state / "below" / "it"))
    assert done.code == 1
    assert rows(done)["$HANDRAIL_STATE_DIR cannot be made"][0] == "error"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_state_folder_that_cannot_be_written_is_exit_1(here, state: Path) -> None:
    state.mkdir(mode=0o500)
    done = here("doctor", "--json")
    assert done.code == 1
    assert rows(done)["$HANDRAIL_STATE_DIR cannot be written"] == ("error", "chmod u+rwx $HANDRAIL_STATE_DIR")


def test_a_state_folder_that_others_can_enter_is_a_warning(here, state: Path) -> None:
    here("call", "ls", '{"path": "."}')
    state.chmod(0o755)
    done = here("doctor", "--json")
    assert done.code == 0
    text = "$HANDRAIL_STATE_DIR is open to other users (mode 755)"
    assert rows(done)[text] == ("warning", "chmod 700 $HANDRAIL_STATE_DIR")


def test_an_audit_that_was_touched_is_exit_1(here, state: Path) -> None:
    here("call", "ls", '{"path": "."}')
    audit = state / "audit.jsonl"
    audit.write_bytes(audit.read_bytes().replace(b'"ls"', b'"rm"'))
    done = here("doctor", "--json")
    assert done.code == 1
    text = "audit: Record 1 was changed or removed; 0 before it are sound."
    assert rows(done)[text] == ("error", "handrail audit verify")


def test_a_session_that_a_crash_ended_is_a_warning(here, environment: dict[str, str], workspace: Path) -> None:
    script = "import os, sys, handrail; rail = handrail.Handrail(sys.argv[1]); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", script, str(workspace)], env=environment, check=False)
    done = here("doctor", "--json")
    assert done.code == 0
    text = "1 session crashed; the audit may lack records"
    assert rows(done)[text] == ("warning", "handrail audit verify")


def test_a_journal_that_is_none_is_exit_1(here, state: Path) -> None:
    here("call", "ls", '{"path": "."}')
    [journal] = state.glob("workspaces/*/cli/journal.db")
    journal.write_bytes(b"no database" * 1000)
    done = here("doctor", "--json")
    assert done.code == 1
    [row] = [row for row in done.json["rows"] if row["status"] == "error"]
    assert row["text"].startswith("journal of session cli: the journal $HANDRAIL_STATE_DIR/")
    assert row["fix"].startswith("mv $HANDRAIL_STATE_DIR/workspaces/")


def test_settings_with_problems_are_exit_1_and_what_was_ignored_is_a_warning(here, config) -> None:
    config("mode = 3\nmood = 4\n")
    assert rows(here("doctor", "--json"))["the settings have 2 problems"] == ("error", "handrail config")
    config("[tools]\nenable = ['aply_patch']\n")
    assert rows(here("doctor", "--json"))["the settings name tools that do not exist"] == ("error", "handrail tools")
    config("mode = 'plan'\n")
    done = here("doctor", "--json", HANDRAIL_MODE="full")
    assert done.code == 0
    assert rows(done)["user file ~/.config/handrail/config.toml can be used"] == ("ok", None)
    [ignored] = [row for row in done.json["rows"] if row["text"].startswith("HANDRAIL_MODE=full is ignored")]
    assert (ignored["status"], ignored["fix"]) == ("warning", "unset HANDRAIL_MODE")


def test_an_environment_that_names_no_place_is_exit_1(here) -> None:
    done = here("doctor", "--json", HANDRAIL_STATE_DIR="relative")
    assert done.code == 1
    assert any(text.startswith("the state folder is unknown") for text in rows(done))


@pytest.mark.parametrize("state_dir", ["outside", None], ids=["named by the environment", "in the home folder"])
def test_json_names_no_user_and_no_path_of_this_machine(here, config, tmp_path: Path, state_dir) -> None:
    config("mode = 'plan'\n")
    where = str(tmp_path / state_dir) if state_dir else None
    here("call", "ls", '{"path": "."}', HANDRAIL_STATE_DIR=where)
    done = here("doctor", "--json", HANDRAIL_STATE_DIR=where, HANDRAIL_MODE="full")
    assert done.code == 0
    assert str(tmp_path) not in done.out
    assert ("$HANDRAIL_STATE_DIR" if where else "~/.local/state/handrail") in done.out


def test_the_last_line_counts_and_names_the_next_command(run) -> None:
    rows = run("doctor", "--json").json["rows"]
    counts = [sum(row["status"] == status for row in rows) for status in ("ok", "warning", "error")]
    last = run("doctor").out.splitlines()[-1]
    assert [int(number) for number in re.findall(r"(\d+) (?:ok|warning|problem)", last)] == counts
    fixes = [row["fix"] for status in ("error", "warning") for row in rows if row["status"] == status and row["fix"]]
    assert last.endswith(f" Next: {fixes[0]}" if fixes else "problems.")
