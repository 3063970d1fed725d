"""audit and audit verify: the records, and that nobody touched them."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CALLS = 5
VICTIM = """
import os, signal, sys
from handrail import Handrail
rail = Handrail(sys.argv[1], session="victim")
for _ in range(3):
    rail.call("ls", {"path": "."})
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def audit(here, workspace: Path, state: Path) -> Path:
    """An audit of five records, one of them of a refusal."""
    here("call", "write", '{"path": "a.txt", "content": "x"}', "--mode", "auto")
    here("call", "read", '{"path": ".env"}')
    for _ in range(CALLS - 2):
        here("call", "ls", '{"path": "."}')
    return state / "audit.jsonl"


@pytest.fixture
def killed(environment: dict[str, str], workspace: Path) -> None:
    """Three calls of a process that was killed before it could close its session."""
    done = subprocess.run([sys.executable, "-c", VICTIM, str(workspace)], env=environment, check=False)
    assert done.returncode == -9


def rewrite(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], None]:
    return lambda audit: audit.write_bytes(b"".join(change(audit.read_bytes().splitlines(keepends=True))))  # type: ignore[func-returns-value]


@pytest.mark.usefixtures("audit")
def test_audit_is_a_table_of_the_last_records(here) -> None:
    head, *rows = here("audit").out.splitlines()
    assert head.split() == ["time", "tool", "decision", "rule", "result", "duration", "files", "details"]
    assert [row.split()[2:6] for row in rows[:3]] == [
        ["write", "allow", "fs.write", "ok"],
        ["read", "deny", "fs.secret", "POLICY_DENIED"],
        ["ls", "allow", "fs.read", "ok"],
    ]
    assert rows[0].endswith("a.txt")
    assert rows[1].endswith("A rule forbids the call.")
    assert len(here("audit", "--limit", "2").out.splitlines()) == 3


def test_audit_shows_what_a_refused_and_a_failed_command_was(here) -> None:
    here("call", "exec", '{"command": "rm -rf secret-name"}', "--mode", "plan")
    here("call", "exec", '{"command": "git log secret-name", "cwd": "missing"}')
    _, refused, failed = here("audit").out.splitlines()
    assert "POLICY_DENIED" in refused
    assert refused.endswith("rm -rf …: A rule forbids the call.")
    assert "NOT_FOUND" in failed
    assert failed.endswith("git log …: The file, folder or reference does not exist.")


@pytest.mark.usefixtures("audit")
def test_audit_json_has_whole_records(here) -> None:
    found = here("audit", "--json").json
    assert found["schema"] == "handrail.audit/1"
    assert [record["seq"] for record in found["records"]] == [1, 2, 3, 4, 5]
    assert found["records"][0]["files_changed"] == ["a.txt"]
    assert found["records"][0]["args"]["content"] == "<1 characters>"


def test_an_audit_without_records_is_intact_and_is_not_made(here, state: Path) -> None:
    assert here("audit").err == "the audit has no record yet\n"
    assert here("audit", "--json").json == {"schema": "handrail.audit/1", "records": []}
    assert here("audit", "verify").out == "0 records intact\n"
    assert not state.exists()


@pytest.mark.usefixtures("audit")
def test_an_audit_that_nobody_touched_is_intact(here) -> None:
    done = here("audit", "verify")
    assert (done.code, done.out, done.err) == (0, "5 records intact\n", "")
    found = here("audit", "verify", "--json").json
    assert (found["schema"], found["intact"], found["count"]) == ("handrail.audit/1", True, 5)
    assert (found["problems"], found["restored"], len(found["head"])) == ([], 0, 64)


TAMPERED = [
    pytest.param(
        rewrite(lambda lines: [*lines[:2], lines[2].replace(b'"ls"', b'"rm"'), *lines[3:]]),
        "Record 3 was changed or removed; 2 before it are sound.",
        id="changed",
    ),
    pytest.param(
        rewrite(lambda lines: [*lines[:2], *lines[3:]]),
        "Record 3 was changed or removed; 2 before it are sound.",
        id="removed",
    ),
    pytest.param(
        rewrite(lambda lines: lines[1:]), "Record 1 was changed or removed; 0 before it are sound.", id="first removed"
    ),
    pytest.param(
        rewrite(lambda lines: [*lines[:3], lines[1], *lines[3:]]),
        "Record 4 was inserted or changed; 3 before it are sound.",
        id="inserted",
    ),
    pytest.param(
        rewrite(lambda lines: [lines[1], lines[0], *lines[2:]]),
        "Record 1 was changed or removed; 0 before it are sound.",
        id="swapped",
    ),
    pytest.param(rewrite(lambda lines: lines[:-1]), "The end was cut: call ", id="cut"),
    pytest.param(rewrite(lambda lines: []), "The end was cut: call ", id="emptied"),
    pytest.param(lambda audit: audit.unlink(), "The end was cut: call ", id="gone"),
]


@pytest.mark.parametrize(("tamper", "sentence"), TAMPERED)
def test_whoever_touches_the_audit_is_found(here, audit: Path, tamper: Callable[[Path], None], sentence: str) -> None:
    tamper(audit)
    done = here("audit", "verify")
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith(sentence)
    assert all(line.startswith(sentence) for line in done.out.splitlines())
    found = here("audit", "verify", "--json")
    assert (found.code, found.json["intact"]) == (1, False)
    assert found.json["problems"] == done.out.splitlines()


def test_a_record_that_is_not_sound_is_marked_in_the_table(here, audit: Path) -> None:
    audit.write_bytes(audit.read_bytes().replace(b'"fs.secret"', b'"fs.public"'))
    done = here("audit")
    assert (done.code, len(done.out.splitlines())) == (0, 6)
    assert "not sound" in done.out.splitlines()[2]


@pytest.mark.usefixtures("killed")
def test_records_that_a_killed_process_could_not_write_are_restored_first(here, state: Path) -> None:
    audit = state / "audit.jsonl"
    lines = audit.read_bytes().splitlines(keepends=True)
    audit.write_bytes(lines[0] + lines[1][:50])  # one record whole, one torn, one never begun
    done = here("audit", "verify")
    assert (done.code, done.out) == (0, "3 records intact\n")
    assert done.err == "2 records restored after a crash\n"
    assert here("audit", "verify", "--json").json["restored"] == 0
    assert [record["args"] for record in here("audit", "--json").json["records"]] == [{"path": "."}] * 3


@pytest.mark.usefixtures("killed")
def test_a_process_that_was_killed_after_its_records_leaves_nothing_to_restore(here) -> None:
    done = here("audit", "verify")
    assert (done.code, done.out, done.err) == (0, "3 records intact\n", "")
