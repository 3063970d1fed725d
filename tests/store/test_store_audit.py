"""The audit chain: whatever is done to it is found, whatever a crash did to it is mended."""

import fcntl
import os
import random
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Handrail, StoreError, ToolCall
from handrail.protocol.records import AuditRecord
from handrail.runtime.results import redact_arguments
from handrail.state import StoredState
from handrail.store.audit import AuditChain, Verification, decode_record, seal_record

Make = Callable[..., Handrail]


def record(call: str, session: str = "s") -> AuditRecord:
    return AuditRecord(
        time=datetime(2026, 1, 2, tzinfo=UTC),
        session_id=session,
        trace_id=call,
        tool_call_id=call,
        name="read",
        version="1.0.0",
        args={"path": "a.txt"},
        decision="allow",
        rule="fs.read",
        ok=True,
        error_code=None,
        summary='Read it, "all" of it\n',
        duration_ms=0.5,
        files_changed=(),
        commands_run=(),
        limits=(),
    )


def chain_of(path: Path, count: int, start: int = 0) -> list[bytes]:
    chain = AuditChain(str(path / "audit.jsonl"))
    for number in range(start, start + count):
        chain.append(record(f"call_{number}"))
    chain.close()
    return (path / "audit.jsonl").read_bytes().splitlines(keepends=True)


def verified(path: Path) -> Verification:
    return StoredState(str(path)).verify()


def test_each_line_is_sealed_with_the_hash_of_the_line_before(tmp_path: Path) -> None:
    previous = "0" * 64
    for number, line in enumerate(chain_of(tmp_path, 3), start=1):
        found = decode_record(line)
        assert found is not None
        linked, digest = found
        assert (linked.seq, linked.prev, linked.tool_call_id) == (number, previous, f"call_{number - 1}")
        assert linked.summary == record("x").summary
        previous = digest
    assert verified(tmp_path) == Verification(3, previous, ())


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    chain_of(tmp_path, 1)
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o777 == 0o600


@given(st.data())
def test_any_change_of_one_byte_is_found(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("chain")
    whole = b"".join(chain_of(folder, 4))
    place = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != whole[place]))
    changed = whole[:place] + bytes([byte]) + whole[place + 1 :]
    (folder / "audit.jsonl").write_bytes(changed)
    found = verified(folder)
    if place == len(whole) - 1:  # without its newline the last line is torn; the journal would know of its call
        assert found.records == 3
    else:
        assert not found.intact
        assert f"{whole.count(chr(10).encode(), 0, place)} before it are sound" in found.problems[0]


def test_every_byte_of_a_chain_counts(tmp_path: Path, deep: bool) -> None:
    whole = b"".join(chain_of(tmp_path, 2))
    for place in range(0, len(whole) - 1, 1 if deep else 7):
        (tmp_path / "audit.jsonl").write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert not verified(tmp_path).intact, f"byte {place} was changed unnoticed"


EDITS: dict[str, Callable[[list[bytes], int, int], list[bytes]]] = {
    "removed": lambda lines, one, _: lines[:one] + lines[one + 1 :],
    "repeated": lambda lines, one, _: lines[: one + 1] + lines[one:],
    "swapped": lambda lines, one, other: [
        lines[other] if number == one else lines[one] if number == other else line for number, line in enumerate(lines)
    ],
    "emptied": lambda lines, one, _: [*lines[:one], b"\n", *lines[one + 1 :]],
    "inserted": lambda lines, one, _: [*lines[:one], b"{}\n", *lines[one:]],
    "joined": lambda lines, one, _: [*lines[:one], lines[one].rstrip(b"\n"), *lines[one + 1 :]],
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 3), (2, 4), (0, 4), (3, 1)])
def test_lines_that_were_moved_are_found(tmp_path: Path, edit: str, one: int, other: int) -> None:
    lines = chain_of(tmp_path, 5)
    (tmp_path / "audit.jsonl").write_bytes(b"".join(EDITS[edit](lines, one, other)))
    found = verified(tmp_path)
    assert not found.intact
    assert found.records <= one + 1


def test_a_line_forged_in_its_place_is_found_at_the_next(tmp_path: Path) -> None:
    lines = chain_of(tmp_path, 3)
    other = tmp_path / "other"
    other.mkdir()
    chain = AuditChain(str(other / "audit.jsonl"))
    chain.append(record("another call"))  # sound in itself: right number, right start
    lines[0] = (other / "audit.jsonl").read_bytes()
    (tmp_path / "audit.jsonl").write_bytes(b"".join(lines))
    assert verified(tmp_path).problems == ("Record 2 was inserted or changed; 1 before it are sound.",)


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_a_cut_end_is_found_by_the_journals(rail: Make, tmp_path: Path, cut: int) -> None:
    state = tmp_path / "state"
    with rail(session="one") as one, rail(session="two") as two:
        for _ in range(3):
            one.ls()
            two.ls()
    assert verified(state).records == 6
    audit = state / "audit.jsonl"
    lines = audit.read_bytes().splitlines(keepends=True)
    audit.write_bytes(b"".join(lines[:-cut]))
    assert len(verified(state).problems) == cut
    audit.write_bytes(b"".join(lines))
    assert verified(state).intact


def test_a_cut_end_is_found_though_the_chain_goes_on_after_it(rail: Make, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with rail(session="one") as one:
        one.ls()
        lost = one.ls().tool_call_id
        audit = state / "audit.jsonl"
        audit.write_bytes(b"".join(audit.read_bytes().splitlines(keepends=True)[:-1]))
        one.ls()
    found = verified(state)
    assert found.records == 2
    assert found.problems == (f"The end was cut: call {lost} of session one has no record.",)


def test_a_removed_audit_is_found(rail: Make, tmp_path: Path) -> None:
    with rail(session="one") as one:
        one.ls()
    (tmp_path / "state" / "audit.jsonl").unlink()
    assert not verified(tmp_path / "state").intact


def test_calls_of_one_id_in_two_sessions_both_need_their_record(rail: Make, tmp_path: Path) -> None:
    for session in ("one", "two"):
        with rail(session=session) as own:
            assert own.call("ls", {"path": "."}, tool_call_id="call").ok
    state = tmp_path / "state"
    assert verified(state).intact
    audit = state / "audit.jsonl"
    audit.write_bytes(audit.read_bytes().splitlines(keepends=True)[0])
    assert verified(state).problems == ("The end was cut: call call of session two has no record.",)


def test_a_journal_that_cannot_be_read_is_named_and_breaks_no_chain(rail: Make, tmp_path: Path) -> None:
    for session in ("one", "two"):
        with rail(session=session) as own:
            own.ls()
    [journal] = (tmp_path / "state").glob("workspaces/*/one/journal.db")
    journal.write_bytes(b"garbage" * 1000)
    found = verified(tmp_path / "state")
    assert found.records == 2
    assert (found.problems, len(found.unread)) == ((), 1)
    assert "session one could not be checked" in found.unread[0]


@pytest.mark.parametrize("torn", [1, 10, 400])
def test_a_torn_last_line_is_mended_by_the_next(tmp_path: Path, torn: int) -> None:
    lines = chain_of(tmp_path, 3)
    audit = tmp_path / "audit.jsonl"
    audit.write_bytes(b"".join(lines)[:-torn])
    assert verified(tmp_path).records == 2
    chain_of(tmp_path, 2, start=7)
    found = verified(tmp_path)
    assert (found.records, found.problems) == (4, ())


def test_a_chain_that_is_nothing_but_a_torn_line_starts_anew(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").write_bytes(b'{"seq":1')
    chain_of(tmp_path, 2)
    assert verified(tmp_path).records == 2


def test_a_line_longer_than_any_window_is_found_again(tmp_path: Path) -> None:
    chain = AuditChain(str(tmp_path / "audit.jsonl"))
    chain.append(record("first"))
    many = {f"name_{number}": number for number in range(30_000)}
    import msgspec

    chain.append(msgspec.structs.replace(record("long"), args=many))
    other = AuditChain(str(tmp_path / "audit.jsonl"))
    other.append(record("last"))
    assert verified(tmp_path) == Verification(3, verified(tmp_path).head, ())
    assert other.contains("s", {"first", "long", "last", "none"}, 0) == {"first", "long", "last"}


def test_only_whole_lines_of_the_session_count_as_there(tmp_path: Path) -> None:
    chain = AuditChain(str(tmp_path / "audit.jsonl"))
    chain.append(record("call_1"))
    chain.append(record("call_2", "another session"))
    chain.append(record("call_30"))
    whole = (tmp_path / "audit.jsonl").read_bytes()
    (tmp_path / "audit.jsonl").write_bytes(whole[:-5])
    wanted = {"call_1", "call_2", "call_3", "call_30"}
    assert chain.contains("s", wanted, 0) == {"call_1"}
    assert chain.contains("s", wanted, len(whole)) == set()


def test_a_closed_chain_writes_nowhere(tmp_path: Path) -> None:
    chain = AuditChain(str(tmp_path / "audit.jsonl"))
    chain.close()
    chain.close()
    with (tmp_path / "innocent.txt").open("wb"), pytest.raises(StoreError, match="closed"):
        chain.append(record("late"))
    assert (tmp_path / "innocent.txt").read_bytes() == b""


APPENDER = """
import sys
sys.path[:0] = sys.argv[3:]
from test_store_audit import record
from handrail.store.audit import AuditChain
chain = AuditChain(sys.argv[1])
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    chain.append(record(f"{__import__('os').getpid()}_{number}"))
"""


def test_two_processes_make_one_chain(tmp_path: Path, count: Callable[[int], int]) -> None:
    """Both wait for one lock to begin with, so that they really meet."""
    lines = count(1_000)
    command = [sys.executable, "-c", APPENDER, str(tmp_path / "audit.jsonl"), str(lines), str(Path(__file__).parent)]
    appenders = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(2)]
    with (tmp_path / "audit.jsonl").open("ab") as audit:
        fcntl.flock(audit, fcntl.LOCK_EX)
        for appender in appenders:
            assert appender.stdin is not None
            appender.stdin.write(b"go\n")
            appender.stdin.flush()
        fcntl.flock(audit, fcntl.LOCK_UN)
    for appender in appenders:
        appender.communicate()
        assert appender.returncode == 0
    found = verified(tmp_path)
    assert (found.records, found.problems) == (2 * lines, ())


def test_one_record_a_call_refusals_included(rail: Make, tmp_path: Path, workspace: Path) -> None:
    (workspace / "a.txt").write_text("text\n")
    with rail(session="s", mode="plan") as one:
        results = [
            one.read("a.txt"),
            one.read("missing.txt"),
            one.write("a.txt", "no"),
            one.call("no_such_tool", {}),
            one.call("read", {"path": 5}),
            one.call("read", {"path": "a.txt"}, version="9.0.0"),
            one.read("../outside"),
        ]
    lines = (tmp_path / "state" / "audit.jsonl").read_bytes().splitlines(keepends=True)
    records = [found[0] for line in lines if (found := decode_record(line))]
    codes = [result.error.code if result.error else None for result in results]
    assert codes == [
        *(None, "NOT_FOUND", "POLICY_DENIED", "UNKNOWN_TOOL", "INVALID_ARGUMENT", "UNSUPPORTED_VERSION"),
        "OUTSIDE_WORKSPACE",
    ]
    assert [(r.tool_call_id, r.name, r.ok, r.error_code) for r in records] == [
        (result.tool_call_id, result.name, result.ok, code) for result, code in zip(results, codes, strict=True)
    ]
    first, _, refused = records[:3]
    assert (first.session_id, first.decision, first.rule, first.args) == (
        "s",
        "allow",
        "fs.read",
        {
            "path": "a.txt",
            "offset": 1,
            "limit": 2000,
        },
    )
    assert (refused.decision, refused.rule) == ("deny", "fs.write")
    assert refused.args == {"path": "a.txt", "content": "<2 characters>"}
    assert first.summary == results[0].summary
    assert first.duration_ms == results[0].duration_ms
    assert first.trace_id == first.tool_call_id


OLDER = (
    b'{"time":"2026-01-02T00:00:00Z","session_id":"s","trace_id":"call_0","tool_call_id":"call_0","na'
    b'me":"exec","version":"1.0.0","args":{"command":"<6 characters>"},"decision":"deny","rule":"exec'
    b'.denied","ok":false,"error_code":"POLICY_DENIED","summary":"","duration_ms":0.5,"files_changed"'
    b':[],"commands_run":[],"limits":[],"seq":1,"prev":"000000000000000000000000000000000000000000000'
    b'0000000000000000000","hash":"9de40b9e23f1985030f956d8856a025c010293d5fa0fcbf31393aae1fa93ffed"}'
    b"\n"
)
"""The record of a refused command as version 0.1.0 wrote it."""


def _records(tmp_path: Path) -> list[AuditRecord]:
    lines = (tmp_path / "state" / "audit.jsonl").read_bytes().splitlines(keepends=True)
    return [found[0] for line in lines if (found := decode_record(line))]


def test_the_record_of_a_refused_command_says_which_command_and_why(rail: Make, tmp_path: Path) -> None:
    with rail(session="s", mode="plan") as one:
        one.call("exec", {"command": "rm -rf build/secret-name"})
        one.call("exec", {"command": "rm x", "cwd": "../outside"})
        one.call("exec", {"command": 5})
    refused, outside, wrong = _records(tmp_path)
    assert (refused.command, refused.decision, refused.rule) == ("rm -rf …", "deny", "fs.delete")
    assert refused.error_code == "POLICY_DENIED"
    assert refused.summary == "A rule forbids the call."
    assert refused.commands_run == ()
    assert (outside.command, outside.error_code) == ("rm …", "OUTSIDE_WORKSPACE")
    assert (wrong.command, wrong.error_code) == (msgspec.UNSET, "INVALID_ARGUMENT")
    assert verified(tmp_path / "state").intact


def test_the_record_of_a_failed_call_says_what_failed_without_contents(rail: Make, tmp_path: Path) -> None:
    with rail(session="s") as one:
        one.read("secret-name.txt")
        one.call("exec", {"command": "sleep 60", "timeoutMs": 100})
    missing, stopped = _records(tmp_path)
    assert (missing.summary, missing.command) == ("The file, folder or reference does not exist.", msgspec.UNSET)
    assert (stopped.error_code, stopped.command) == ("TIMEOUT", "sleep …")
    assert stopped.summary.startswith("The time limit was reached; all processes of the call were stopped.")


def test_a_chain_that_an_older_version_began_is_verified_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").write_bytes(OLDER)
    assert verified(tmp_path).intact
    chain = AuditChain(str(tmp_path / "audit.jsonl"))
    chain.append(msgspec.structs.replace(record("call_1"), command="git status"))
    chain.close()
    assert (tmp_path / "audit.jsonl").read_bytes().startswith(OLDER)
    assert verified(tmp_path).records == 2
    assert verified(tmp_path).intact


def test_the_record_says_what_was_changed_and_whose_call_it_was(rail: Make, tmp_path: Path) -> None:
    with rail(session="s") as one:
        call = ToolCall(
            tool_call_id="c1",
            name="write",
            args={"path": "new.txt", "content": "text"},
            trace_id="trace-7",
            timestamp=datetime(2026, 5, 6, tzinfo=UTC),
        )
        one.batch([call])
    found = decode_record((tmp_path / "state" / "audit.jsonl").read_bytes())
    assert found is not None
    assert (found[0].trace_id, found[0].time) == ("trace-7", datetime(2026, 5, 6, tzinfo=UTC))
    assert found[0].files_changed == ("new.txt",)
    assert found[0].version == "1.0.0"


def test_random_cuts_of_the_file_never_pass(tmp_path: Path, rail: Make) -> None:
    with rail(session="s") as one:
        for _ in range(5):
            one.ls()
    audit = tmp_path / "state" / "audit.jsonl"
    whole, draw = audit.read_bytes(), random.Random(7)
    for _ in range(50):
        begin = draw.randrange(len(whole))
        end = draw.randrange(begin + 1, len(whole) + 1)
        audit.write_bytes(whole[:begin] + whole[end:])
        assert not verified(tmp_path / "state").intact
    os.truncate(audit, 0)
    assert not verified(tmp_path / "state").intact


def resealed(lines: list[bytes]) -> bytes:
    """The lines sealed anew, as somebody would who can write the audit and not the journals."""
    head, out = "0" * 64, b""
    for number, line in enumerate(lines, start=1):
        fields = msgspec.json.decode(line)
        for name in ("seq", "prev", "hash"):
            fields.pop(name, None)
        text, head = seal_record(msgspec.convert(fields, AuditRecord), number, head)
        out += text
    return out


def swap(old: bytes, new: bytes) -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: [line.replace(old, new) for line in lines]


FORGERIES = {
    "a file left out": swap(b'["b.txt"]', b"[]"),
    "another tool": swap(b'"name":"ls"', b'"name":"read"'),
    "a refusal hidden": swap(b'"error_code":"NOT_FOUND"', b'"error_code":null'),
    "a call that never was": lambda lines: [*lines, *swap(b'_id":"call-', b'_id":"call-9')(lines[:1])],
    "a call twice": lambda lines: [*lines, lines[0]],
    "a call removed": lambda lines: lines[1:],
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_a_chain_that_was_sealed_anew_is_found_by_the_journals(
    rail: Make, tmp_path: Path, forge: Callable[[list[bytes]], list[bytes]]
) -> None:
    one = rail()
    one.ls(".")
    one.write("b.txt", "x")
    one.read("missing.txt")
    one.close()
    audit = tmp_path / "state" / "audit.jsonl"
    lines = audit.read_bytes().splitlines(keepends=True)
    audit.write_bytes(resealed(lines))
    assert StoredState(str(tmp_path / "state")).verify().intact  # sealing alone changes nothing
    audit.write_bytes(resealed(forge(lines)))
    assert not StoredState(str(tmp_path / "state")).verify().intact


@pytest.mark.parametrize(
    ("arguments", "plain", "expected"),
    [
        ({"path": "a.txt", "content": "secret"}, ("path",), {"path": "a.txt", "content": "<6 characters>"}),
        ({"path": "a" * 201}, ("path",), {"path": "<201 characters>"}),
        (
            {"limit": 5, "deep": True, "none": None, "part": 0.5},
            (),
            {"limit": 5, "deep": True, "none": None, "part": 0.5},
        ),
        ({"edits": [{"oldText": "secret"}], "map": {"a": "secret"}}, ("edits",), {"edits": "<list>", "map": "<dict>"}),
        ("secret", (), "<6 characters>"),
        (["secret"], (), "<list>"),
        (None, (), "<NoneType>"),
        (5, (), "<int>"),
    ],
)
def test_the_audit_keeps_what_a_tool_calls_plain_and_hides_other_texts(
    arguments: object, plain: tuple[str, ...], expected: object
) -> None:
    assert redact_arguments(arguments, plain) == expected


def test_the_name_of_an_argument_cannot_carry_a_text_into_the_audit() -> None:
    shown = redact_arguments({"a secret text as a name": 1, "x" * 500: 2, "fine_name": 3}, ())
    assert shown["fine_name"] == 3
    assert "secret" not in str(shown)
    assert len(str(shown)) < 200
