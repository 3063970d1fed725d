"""Commands that nobody approved do not fill the disk: previews have a byte limit, and a rejected one leaves nothing."""

import hashlib
import os
import random
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from handrail import Done, Handrail, Parked, ToolCall
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.settings import Settings
from handrail.settings.model import Bulk, Limits

Make = Callable[..., Handrail]
PREVIEWS = 1000
LEFT = 1 << 20
"""Bytes that so many rejected previews may leave in the state folder, beside journals and the audit log."""
RECORDS = ("journal.db", "audit")
LITTLE = Settings(limits=Limits(preview="1 MB", waiting="3 MB"))


def asked(rail: Handrail, command: str) -> PermissionRequest:
    result = rail.exec(command)
    assert result.error is not None, result.content
    assert result.error.code == "PERMISSION_REQUIRED", result.content
    return next(request for request in rail.waiting() if request.tool_call_id == result.tool_call_id)


def stopped(result: ToolResult[Any]) -> str:
    """What the refusal of a command says that wrote too much."""
    assert result.error is not None, result.content
    assert result.error.code == "LIMIT_EXCEEDED", result.content
    return result.error.message


def reject(rail: Handrail, request: PermissionRequest) -> None:
    assert rail.answer(request.id, "deny") is not None


def left_in(state: Path) -> dict[str, int]:
    """The bytes of everything in a state folder but journals and the audit log."""
    found: dict[str, int] = {}
    for folder, _, names in os.walk(state):
        for path in (os.path.join(folder, name) for name in ("", *names)):
            relative = os.path.relpath(path, state)
            if not any(record in relative for record in RECORDS):
                status = os.lstat(path)
                size = status.st_size if stat.S_ISREG(status.st_mode) else 0
                found[relative] = max(size, status.st_blocks * 512)
    return found


def test_rejected_previews_leave_next_to_nothing(
    rail: Make, workspace: Path, tmp_path: Path, deep: bool, note: Callable[[str], None]
) -> None:
    previews = PREVIEWS if deep else PREVIEWS // 50
    with rail(mode="ask", session="s") as first:
        reject(first, asked(first, "echo first > made"))
    one, draw = rail(mode="ask", session="s"), random.Random(9)
    before = left_in(tmp_path / "state")
    for _ in range(previews):
        reject(one, asked(one, f"head -c {draw.randrange(1, 300_000)} /dev/urandom > a; echo {draw.random()} > b"))
    one.close()
    grown = sum(left_in(tmp_path / "state").values()) - sum(before.values())
    note(f"{previews} rejected previews left {grown:,} bytes beside journals and the audit log")
    assert grown <= LEFT * previews // PREVIEWS
    assert list(workspace.iterdir()) == []


def test_a_rejected_batch_leaves_no_content(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="ask")
    content = random.Random(9).randbytes(40_000).hex()
    calls = [("write", {"path": "a", "content": content}), ("exec", {"command": "cat a a > b"})]
    now = datetime.now(UTC)
    outcome = one.batch([ToolCall(tool_call_id=n, name=n, args=a, trace_id=n, timestamp=now) for n, a in calls])
    assert isinstance(outcome, Parked)
    assert outcome.requests[1].preview is not None
    assert outcome.requests[1].preview.tried is not None, outcome.requests[1].preview.text
    for request in outcome.requests:
        reject(one, request)
    one.close()
    large = {path: size for path, size in left_in(tmp_path / "state").items() if size > 10_000}
    assert large == {}
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        "head -c 3M /dev/zero > a; echo done",
        "for n in 1 2 3; do head -c 500K /dev/zero > $n; done",
        "mkdir $(seq 300)",
        "for n in 1 2 3; do truncate -s 900K $n; done",
        "head -c 3M /dev/zero > a; rm -f a; head -c 700K /dev/zero > b; head -c 700K /dev/zero > c",
    ],
)
def test_a_preview_above_its_byte_limit_is_stopped_and_leaves_nothing(
    rail: Make, workspace: Path, tmp_path: Path, command: str
) -> None:
    one = rail(mode="ask", settings=LITTLE)
    with rail(mode="ask") as first:
        reject(first, asked(first, "echo first > made"))
    before = left_in(tmp_path / "state")
    assert "limits.preview" in stopped(one.exec(command))
    assert one.waiting() == ()
    one.close()
    after = left_in(tmp_path / "state")
    assert after.keys() <= before.keys()
    assert sum(after.values()) <= sum(before.values()) + LEFT // PREVIEWS
    assert list(workspace.iterdir()) == []


def test_a_preview_is_stopped_while_it_writes(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask", settings=LITTLE)
    result = one.exec("head -c 900K /dev/zero > a; head -c 900K /dev/zero > b; sleep 60")
    assert "limits.preview" in stopped(result)
    assert result.duration_ms < 55_000  # nobody waited for its end
    assert list(workspace.iterdir()) == []


def test_all_previews_that_wait_have_a_limit_together(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask", settings=LITTLE)
    requests = [asked(one, f"head -c 900K /dev/urandom > {name}") for name in "abc"]
    told = stopped(one.exec("head -c 900K /dev/urandom > d"))
    assert "limits.waiting" in told
    assert len(one.waiting()) == 3
    reject(one, requests[0])
    asked(one, "head -c 900K /dev/urandom > d")
    outcome = one.answer(requests[1].id, "once")
    assert isinstance(outcome, Done)
    assert outcome.results[0].ok
    assert [(path.name, path.stat().st_size) for path in workspace.iterdir()] == [("b", 900 << 10)]


def test_many_bytes_at_once_ask_in_auto_and_above_the_limit_of_previews_nothing_is_kept(
    rail: Make, workspace: Path, tmp_path: Path
) -> None:
    settings = Settings(limits=Limits(preview="1 MB"), bulk=Bulk(bytes="100 KB"))
    one = rail(mode="auto", settings=settings)
    assert one.exec("head -c 90K /dev/zero > small").ok
    request = asked(one, "head -c 200K /dev/urandom > large")
    assert request.reason == "writes 0.2 MB at once, more than 0.1 MB"
    reject(one, request)
    assert "limits.preview" in stopped(one.exec("head -c 2M /dev/urandom > larger"))
    assert [path.name for path in workspace.iterdir()] == ["small"]
    assert rail(mode="full", settings=settings).exec("head -c 2M /dev/urandom > larger").ok


def test_an_approved_preview_leaves_no_second_copy(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="ask")
    outcome = one.answer(asked(one, "head -c 300K /dev/urandom > a").id, "once")
    assert isinstance(outcome, Done)
    assert outcome.results[0].ok
    assert (workspace / "a").stat().st_size == 300 << 10
    assert {path: size for path, size in left_in(tmp_path / "state").items() if size > 100_000} == {}


def test_keeping_a_preview_stores_what_mends_a_file_with_two_names(rail: Make, workspace: Path) -> None:
    (workspace / "one").write_text("old\n")
    os.link(workspace / "one", workspace / "two")
    one = rail(mode="ask")
    assert isinstance(one.answer(asked(one, "echo new >> one").id, "once"), Done)
    assert (workspace / "two").read_text() == "old\nnew\n"
    # Killed in the middle of the write, both contents are needed to put it back.
    blobs = one._session.recorder.history.blobs
    assert all(blobs.has(hashlib.sha256(text).hexdigest()) for text in (b"old\n", b"old\nnew\n"))
