"""sessions and sessions remove: what the state folder holds, and how it is let go."""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from handrail import Handrail
from handrail.protocol.receipt import ChainedRecord
from handrail.protocol.records import AuditRecord
from handrail.settings import Settings
from handrail.state import StoredState
from handrail.store.audit import decode_record, seal_record

DAY = 86_400
LS = '{"path": "."}'
WRITE = '{"path": "a.txt", "content": "x"}'


def names(done: Any) -> list[str]:
    return [row.split()[0] for row in done.out.splitlines()[1:]]


def folder_of(state: Path, session: str) -> Path:
    [found] = state.glob(f"workspaces/*/{session}")
    return found


def make_old(state: Path, session: str, days: float) -> None:
    """As if nobody had used it for so long."""
    when = time.time() - days * DAY
    for path in folder_of(state, session).glob("journal.db*"):
        os.utime(path, (when, when))


def sweep(state: Path, **options: Any) -> None:
    """Opens a session a day after the last sweep."""
    os.utime(state / "swept", (time.time() - 1.5 * DAY,) * 2)
    Handrail(state.parent / "workspace", session="sweeper", state_dir=state, **options).close()


def test_sessions_are_listed_with_state_and_size_the_last_used_first(here, state: Path, tmp_path: Path) -> None:
    assert here("sessions", "--all").err == "no session is stored\n"
    here("call", "ls", LS, "--session", "older")
    here("call", "write", WRITE, "--session", "waits", "--mode", "ask")
    make_old(state, "older", 3)
    other = tmp_path / "other"
    other.mkdir()
    here("call", "ls", LS, "--session", "elsewhere", cwd=other)
    done = here("sessions")
    assert (done.code, names(done)) == (0, ["waits", "older"])
    assert [row.split()[1] for row in done.out.splitlines()] == ["state", "waiting", "idle"]
    assert names(here("sessions", "--all")) == ["elsewhere", "waits", "older"]
    found = here("sessions", "--all", "--json").json
    assert found["schema"] == "handrail.sessions/1"
    assert [one["workspace"] for one in found["sessions"]] == [str(other), *[str(tmp_path / "workspace")] * 2]
    assert all(one["bytes"] > 4_000 for one in found["sessions"])


def test_a_removed_session_is_gone_and_the_audit_and_the_others_stay(here, state: Path) -> None:
    for session in ("gone", "stays"):
        here("call", "ls", LS, "--session", session)
    done = here("sessions", "remove", "gone")
    assert (done.code, done.out) == (0, "removed gone\n")
    assert names(here("sessions")) == ["stays"]
    assert not list(state.glob("workspaces/*/gone"))
    assert not list(state.glob("workspaces/*/.removed-*"))
    assert here("audit", "verify").out == "2 records intact\n"
    again = here("sessions", "remove", "gone")
    assert (again.code, "no session 'gone'" in again.err) == (1, True)
    assert here("sessions", "remove").code == 2


def test_the_audit_of_a_removed_session_is_intact_if_one_of_its_name_begins_anew(here, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for folder in (None, other):
        here("call", "ls", LS, **({"cwd": folder} if folder else {}))
    assert here("sessions", "remove", "cli").code == 0
    here("call", "ls", LS)
    assert here("audit", "verify").out == "3 records intact\n"


def test_a_record_that_is_put_in_after_a_removal_is_still_found(here, state: Path) -> None:
    """Whoever inserts one can seal the chain anew, but no journal knows it, and only so many calls were removed."""
    here("call", "ls", LS)
    here("sessions", "remove", "cli")
    here("call", "ls", LS)
    audit = state / "audit.jsonl"
    last = decode_record(audit.read_bytes().splitlines(keepends=True)[-1])
    assert last is not None
    with audit.open("ab") as lines:
        lines.write(seal_record(bare(last[0], tool_call_id="forged"), 3, last[1])[0])
    done = here("audit", "verify")
    assert (done.code, done.out.startswith("Record 3 belongs to a call that its journal does not have")) == (1, True)


def test_undo_works_after_the_session_was_removed(here, workspace: Path) -> None:
    here("call", "write", WRITE, "--mode", "auto", "--session", "gone")
    assert here("sessions", "remove", "gone").code == 0
    assert here("log", "--line", "a.txt:1").code == 0
    assert here("undo").code == 0
    assert not (workspace / "a.txt").exists()
    assert here("redo").code == 0
    assert (workspace / "a.txt").read_text() == "x"


def test_stored_outputs_go_with_the_sessions_that_name_them(here, state: Path, workspace: Path) -> None:
    for number in range(400):
        (workspace / f"{'long' * 25}-{number}").touch()
    for session in ("one", "two"):
        here("call", "ls", LS, "--session", session)
    here("call", "exec", '{"command": "seq 20000"}', "--session", "one", "--mode", "auto")
    kept = list((state / "blobs").iterdir())
    assert len(kept) >= 2
    for blob in kept:
        os.utime(blob, (time.time() - 3600,) * 2)
    assert here("sessions", "remove", "one").code == 0
    assert len(list((state / "blobs").iterdir())) == 1  # the list that both had printed
    assert here("sessions", "remove", "two").code == 0
    assert not list((state / "blobs").iterdir())


def test_a_session_in_use_is_not_removed(here, state: Path, workspace: Path) -> None:
    with Handrail(workspace, session="open", state_dir=state, settings=Settings()) as rail:
        rail.ls()
        refused = here("sessions", "remove", "open", "--force")
        assert (refused.code, refused.err.endswith("open was not removed: another process uses it\n")) == (1, True)
        assert here("sessions").out.splitlines()[1].split()[1] == "running"
        assert rail.ls().ok
    assert here("sessions", "remove", "open").code == 0


def test_a_session_with_a_background_process_is_not_removed(here, state: Path) -> None:
    command = '{"command": "sleep 1000.25", "background": true}'
    assert here("call", "exec", command, "--mode", "full").code == 0
    try:
        refused = here("sessions", "remove", "cli", "--force")
        assert (
            refused.code,
            "its background process still runs; handrail processes stop --all stops it" in refused.err,
        ) == (1, True)
    finally:
        here("processes", "stop", "--all")
    assert here("sessions", "remove", "cli", "--force").code == 0


def test_a_session_with_a_request_that_waits_is_removed_by_force_only(here, state: Path) -> None:
    here("call", "write", WRITE, "--mode", "ask")
    refused = here("sessions", "remove", "cli", "--json")
    assert (refused.code, refused.json["removed"]) == (1, [])
    assert refused.json["kept"][0]["reason"].startswith("its request or question waits")
    assert "waiting" in here("approvals").out
    assert here("sessions", "remove", "cli", "--force").code == 0
    assert "no request waits" in here("approvals").err


def test_old_sessions_are_removed_together(here, state: Path) -> None:
    for session in ("old", "older", "new"):
        here("call", "ls", LS, "--session", session)
    make_old(state, "old", 91)
    make_old(state, "older", 400)
    done = here("sessions", "remove", "--older-than", "90d")
    assert (done.code, sorted(done.out.splitlines())) == (0, ["removed old", "removed older"])
    assert names(here("sessions")) == ["new"]
    assert here("sessions", "remove", "--older-than", "90d").err.endswith(
        "no session is that old; nothing was removed\n"
    )


def test_a_damaged_session_can_be_removed(here, state: Path) -> None:
    here("call", "ls", LS)
    (folder_of(state, "cli") / "journal.db").write_bytes(b"garbage" * 1000)
    assert here("sessions").out.splitlines()[1].split()[1] == "unreadable"
    assert here("sessions", "remove", "cli").code == 0
    here("call", "ls", LS)
    assert here("audit", "verify").out == "2 records intact\n"


def test_doctor_says_what_the_state_folder_holds(here, state: Path) -> None:
    here("call", "write", WRITE, "--mode", "auto")
    make_old(state, "cli", 10)
    [text] = [row["text"] for row in here("doctor", "--json").json["rows"] if "stored outputs" in row["text"]]
    day = datetime.now().astimezone() - timedelta(days=10)
    assert text.startswith(f"1 session, the oldest last used on {day:%Y-%m-%d}; sessions ")
    assert ", undo " in text
    assert ", audit " in text


# The sweep


def test_what_nobody_used_for_longer_than_the_setting_is_swept_once_a_day(here, state: Path) -> None:
    for session in ("old", "waits", "new"):
        here("call", "ls", LS, "--session", session)
    here("call", "write", WRITE, "--session", "waits", "--mode", "ask")
    make_old(state, "old", 400)
    make_old(state, "waits", 400)
    settings = Settings.from_values({"store.keep": "365d"})
    Handrail(state.parent / "workspace", session="soon", state_dir=state, settings=settings).close()
    assert "old" in names(here("sessions"))  # it was swept today
    sweep(state, settings=Settings.from_values({"store.keep": "500d"}))
    assert "old" in names(here("sessions"))
    sweep(state, settings=settings)
    assert sorted(names(here("sessions"))) == ["new", "soon", "sweeper", "waits"]
    assert here("audit", "verify").code == 0


def test_a_clock_that_jumps_ahead_takes_nothing_away(here, state: Path) -> None:
    here("call", "ls", LS, "--session", "old")
    make_old(state, "old", 400)
    os.utime(state / "swept", (time.time() - 100 * DAY,) * 2)  # it is a hundred days later all of a sudden
    Handrail(state.parent / "workspace", session="x", state_dir=state, settings=Settings()).close()
    assert "old" in names(here("sessions"))


def test_what_a_killed_sweep_left_goes_with_the_next_one(here, state: Path) -> None:
    here("call", "ls", LS, "--session", "gone")
    folder = folder_of(state, "gone")
    folder.rename(folder.parent / ".removed-0123456789abcdef")
    assert here("sessions").code == 0
    sweep(state, settings=Settings())
    assert not list(state.glob("workspaces/*/.removed-*"))


def test_old_records_are_archived_and_the_chain_goes_on_across_archives(here, state: Path) -> None:
    audit, archive = state / "audit.jsonl", state / "audit-archive"
    for round_ in range(3):
        here("call", "ls", LS)
        here("call", "ls", LS)
        age(audit)
        sweep(state, settings=Settings())
        assert len(list(archive.iterdir())) == round_ + 1
    here("call", "ls", LS)
    assert sorted(path.name for path in archive.iterdir()) == [f"{seq:012d}.jsonl" for seq in (1, 3, 5)]
    assert len(audit.read_bytes().splitlines()) == 1
    assert StoredState(str(state)).verify().records == 7
    assert [record["seq"] for record in here("audit", "--json").json["records"]] == [1, 2, 3, 4, 5, 6, 7]
    oldest = archive / "000000000001.jsonl"
    oldest.write_bytes(oldest.read_bytes().replace(b'"ls"', b'"rm"', 1))
    assert StoredState(str(state)).verify().problems


def age(audit: Path) -> None:
    """Seals the chain anew with records of two years ago; the journals do not hold the times against it."""
    lines, (head, seq) = [], start_of(audit)
    for line in audit.read_bytes().splitlines(keepends=True):
        found = decode_record(line)
        assert found is not None
        seq += 1
        made, head = seal_record(bare(found[0], time=datetime.now(UTC) - timedelta(days=730)), seq, head)
        lines.append(made)
    audit.write_bytes(b"".join(lines))


def bare(record: ChainedRecord, **changes: Any) -> AuditRecord:
    """A record as it was before it got its place, with something else in it."""
    return AuditRecord(**{name: getattr(record, name) for name in AuditRecord.__struct_fields__} | changes)


def start_of(audit: Path) -> tuple[str, int]:
    first = decode_record(audit.read_bytes().splitlines(keepends=True)[0])
    assert first is not None
    return first[0].prev, first[0].seq - 1


def test_an_archive_that_was_made_just_before_a_kill_counts_its_records_once(here, state: Path) -> None:
    here("call", "ls", LS)
    here("call", "ls", LS)
    age(state / "audit.jsonl")
    before = (state / "audit.jsonl").read_bytes()
    sweep(state, settings=Settings())
    (state / "audit.jsonl").write_bytes(before)  # it was killed before it took the records out of the file
    here("call", "ls", LS)
    assert StoredState(str(state)).verify().records == 3
    assert not StoredState(str(state)).verify().problems
    sweep(state, settings=Settings())
    here("call", "ls", LS)
    assert StoredState(str(state)).verify().records == 4


OPENS = """
import sys
from handrail import Handrail
from handrail.settings import Settings
for _ in range(20):
    with Handrail(sys.argv[1], session="s", state_dir=sys.argv[2], settings=Settings()) as rail:
        assert rail.ls().ok
"""


def test_who_opens_a_session_while_it_is_removed_has_it_or_is_told(here, state: Path, workspace: Path) -> None:
    here("call", "ls", LS, "--session", "s")
    command = [sys.executable, "-c", OPENS, workspace, state]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as opens:
        while opens.poll() is None:
            here("sessions", "remove", "s", "-q")
        told = opens.stderr.read() if opens.stderr else ""
    assert opens.returncode == 0 or "StoreError: the session folder" in told or "cannot be opened" in told, told
    assert here("audit", "verify").code == 0
