"""The look into the journals of tests sees what is wrong, and only that."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import ValidationError

import journals
from handrail import Handrail
from handrail.store.database import Database
from journals import check_journals


@pytest.fixture
def journal(rail: Callable[..., Handrail], workspace: Path, tmp_path: Path) -> Path:
    (workspace / "a.txt").write_text("one\n")
    one = rail(session="seen")
    for _ in range(30):
        one.read("a.txt")
    one.close()
    return next((tmp_path / "state" / "workspaces").glob("*/seen/journal.db"))


def altered(journal: Path, seq: int, **fields: object) -> None:
    database = Database(str(journal), "crash")
    (data,) = database.row("SELECT data FROM event WHERE seq = ?", (seq,)) or (b"",)
    database.run(
        "UPDATE event SET data = ? WHERE seq = ?",
        (json.dumps(json.loads(data) | fields, separators=(",", ":")).encode(), seq),
    )
    database.close()


def test_all_events_of_a_session_are_looked_at_in_a_deep_run_and_some_every_day(journal: Path, tmp_path: Path) -> None:
    assert check_journals(tmp_path, "a", all_of_it=True) == 60
    assert 10 <= check_journals(tmp_path, "a", all_of_it=False) <= 12


def test_what_a_test_broke_on_purpose_is_passed_over(journal: Path, tmp_path: Path) -> None:
    altered(journal, 1, surprise=1)
    assert check_journals(tmp_path, "a", all_of_it=True) == 59


def test_an_event_that_can_be_read_and_is_not_as_the_schema_says_is_an_error(
    journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    altered(journal, 1, surprise=1)
    monkeypatch.setattr(journals, "decode_event", json.loads)
    with pytest.raises(ValidationError, match="surprise"):
        check_journals(tmp_path, "a", all_of_it=True)
