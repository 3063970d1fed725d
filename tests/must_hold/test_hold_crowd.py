"""Many threads and processes on the same files: nothing reported as done is lost, nothing is torn, one chain."""

import hashlib
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crowd import FILES, checked_text, is_whole

from handrail import Handrail
from handrail.protocol.events import ToolCallEnd, ToolCallError
from handrail.settings import Settings
from handrail.state import StoredState
from handrail.store.audit import decode_record

THREADS, CALLS = 16, 200
SESSIONS = ("shared", "shared", "alone-1", "alone-2")
"""One process each."""
CROWD = Path(__file__).with_name("crowd.py")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def run_crowd(workspace: Path, state: Path, calls: int) -> list[tuple[str, list[dict[str, Any]]]]:
    """What every process reports, with its session."""
    crowd = [
        subprocess.Popen(
            [sys.executable, CROWD, workspace, state, session, f"process-{number}", str(THREADS), str(calls)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number, session in enumerate(SESSIONS)
    ]
    for process in crowd:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in crowd:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate()[0] for process in crowd]
    assert [process.returncode for process in crowd] == [0] * len(crowd)
    return [(session, json.loads(output)) for session, output in zip(SESSIONS, outputs, strict=True)]


def follow(writes: list[tuple[str, str]], start: str) -> str:
    """Lines writes up so that each began where the one before ended; the last hash. Fails if one was lost."""
    befores = [before for before, _ in writes]
    assert len(set(befores)) == len(befores), "two writes replaced the same bytes: one of them is lost"
    steps, now = dict(writes), start
    while now in steps:
        now = steps.pop(now)
    assert not steps, "writes that nothing led to"
    return now


def test_no_update_is_lost_no_file_torn_and_the_chain_is_one(
    tmp_path: Path, workspace: Path, count: Callable[[int], int]
) -> None:
    (workspace / "folder").mkdir()
    start = {path: checked_text(path, 3) for path in FILES}
    for path, text in start.items():
        (workspace / path).write_text(text)

    reports = run_crowd(workspace, tmp_path / "state", count(CALLS))
    every = [report for _, part in reports for report in part]
    assert len(every) == len(SESSIONS) * THREADS * count(CALLS)

    # Every call that failed had a reason to; both kinds of call mostly succeed.
    codes = Counter(report["code"] for report in every)
    assert set(codes) <= {None, "STALE_FILE", "CONFLICT"}
    assert all(report["code"] is None for report in every if report["name"] == "read")

    # No torn file: neither what was read on the way nor what is there now.
    assert all(report["whole"] for report in every if report["name"] == "read")
    assert all(is_whole((workspace / path).read_text()) for path in FILES)
    assert sorted(entry.name for entry in workspace.rglob("*") if entry.is_file()) == [
        "a.txt",
        "b.txt",
        "c.txt",
        "d.txt",
    ]

    # No lost update: the successful writes of a file form one chain from its first bytes to its last.
    writes: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for report in every:
        if report["name"] == "write" and report["code"] is None:
            writes[report["path"]].append((report["before"], report["after"]))
    for path in FILES:
        assert follow(writes[path], digest(start[path].encode())) == digest((workspace / path).read_bytes())

    check_memory(tmp_path / "state", workspace, reports)
    print(f"\ncrowd: {len(every)} calls, {sum(map(len, writes.values()))} writes ok, {dict(codes)}")


def check_memory(state: Path, workspace: Path, reports: list[tuple[str, list[dict[str, Any]]]]) -> None:
    """One audit record and one journaled result a call, and both say what was reported."""
    every = {report["id"]: report for _, part in reports for report in part}
    verification = StoredState(str(state)).verify()
    assert verification.problems == ()
    assert verification.records == len(every)
    with (state / "audit.jsonl").open("rb") as lines:
        records = [found[0] for line in lines if (found := decode_record(line))]
    assert {record.tool_call_id: record.error_code for record in records} == {
        call: report["code"] for call, report in every.items()
    }
    journaled: list[tuple[str, str | None]] = []
    for session in dict.fromkeys(SESSIONS):
        with Handrail(workspace, session=session, state_dir=state, settings=Settings()) as rail:
            results = [event.result for event in rail.events() if isinstance(event, ToolCallEnd | ToolCallError)]
            seqs = [event.seq for event in rail.events()]
        assert seqs == list(range(1, len(seqs) + 1))
        assert {result.tool_call_id for result in results} == {
            report["id"] for own, part in reports if own == session for report in part
        }
        journaled += [(result.tool_call_id, result.error.code if result.error else None) for result in results]
    assert sorted(journaled) == sorted((call, report["code"]) for call, report in every.items())
