"""Whatever a caller hands in, the call has one result of the one shape, one journal entry and one audit record."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handrail import Done, Handrail, ToolCall, ToolResult, tool
from handrail.protocol.errors import CODES
from handrail.protocol.events import Event, ToolCallEnd, ToolCallError, ToolCallStart
from handrail.protocol.wire import encode
from handrail.settings import Settings
from handrail.settings.model import Search
from handrail.state import StoredState
from handrail.store.audit import decode_record
from handrail.store.state_dir import make_id


@tool(read_only=True, auto_execute=True)
def echo(value: Any, times: int = 1, words: list[str] | None = None) -> Any:
    """Gives back what it got."""
    return [value] * min(times, 3) + (words or [])


class Odd:
    """Nothing that any encoder knows."""


class Mute:
    """Cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError


class Garbled:
    """Is shown as text that cannot be written."""

    def __repr__(self) -> str:
        return "\ud800"


def endless() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


any_text = st.text(st.characters(codec=None), max_size=30)  # lone surrogates and NUL included
paths = st.sampled_from(["a.txt", "b/c.txt", ".", "..", "/", "/etc/passwd", "@output/x", "a.txt/x", ".env", "x" * 5000])
scalars = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), any_text, paths),
    st.sampled_from([2**63, -(2**63) - 1, 2**64, float("nan"), float("inf"), -0.0, "a\0b", "\ud800"]),
)
strange = st.one_of(
    *(st.binary(max_size=10), st.datetimes(), st.complex_numbers(), st.sets(st.integers(), max_size=3)),
    st.sampled_from([Odd(), Odd, object(), ..., NotImplemented, Path("x"), datetime.now, range(3)]),
    st.builds(endless),
    st.builds(nested, st.sampled_from([50, 5_000])),
    st.builds(lambda: 10**5_000),  # longer than Python is willing to print
)
keys = st.sampled_from(
    [
        "path",
        "content",
        "oldText",
        "newText",
        "replaceAll",
        "offset",
        "limit",
        "depth",
        "value",
        "times",
        "pattern",
        "filePattern",
        "exclude",
        "contextLines",
        "maxResults",
        "file_path",
        "Path",
    ]
)
anything = st.recursive(
    scalars | strange,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(keys | any_text, inner, max_size=4),
        st.dictionaries(st.integers() | st.none() | st.booleans() | st.tuples(st.integers()), inner, max_size=2),
    ),
    max_leaves=8,
)
edits = st.fixed_dictionaries(
    {"path": paths, "oldText": any_text | st.sampled_from(["one", "o", "\n"]), "newText": any_text},
    optional={"replaceAll": st.booleans()},
)
globs = (
    any_text | st.text("ab*?[]{}!/\\.,-^", min_size=1, max_size=12) | st.sampled_from(["*", "*.txt", "b/**", "{a,b}*"])
)
expressions = any_text | st.text(r"abot()[]{}|*+?.^$\\pwdb:!<>=-&~,12 ", min_size=1, max_size=12)
numbers = st.integers(-1, 30) | st.sampled_from([1, 10_000, 10_001, 2**63])
finds = st.fixed_dictionaries(
    {"pattern": globs},
    optional={"path": paths | any_text, "maxResults": numbers, "exclude": st.lists(globs, max_size=3)},
)
greps = st.fixed_dictionaries(
    {"pattern": expressions},
    optional={
        "path": paths | any_text,
        "filePattern": globs | st.none(),
        "caseSensitive": st.booleans(),
        "contextLines": numbers,
        "maxResults": numbers,
    },
)
likely = (
    st.fixed_dictionaries({}, optional=dict.fromkeys(("path", "content", "offset", "limit", "depth"), scalars))
    | edits
    | finds
    | greps
)
own = {"edit": edits, "find": finds, "grep": greps}
"""What the arguments of a tool are, at least by their names."""
arguments = st.one_of(likely, st.dictionaries(keys, anything, max_size=4), anything)
names = st.one_of(
    st.sampled_from(["read", "write", "edit", "find", "grep", "ls", "echo", "Read", "exec", "", "no_such_tool"]),
    any_text,
    anything,
)
versions = st.one_of(st.none(), st.sampled_from(["1", "1.0.0", "2.0.0", "x", "", "2\ud800"]), any_text, anything)
permissions = st.one_of(
    st.none(), st.lists(st.sampled_from(["fs.read", "fs.write", "fs.chat"])).map(tuple), st.just(()), anything
)


class Bench:
    """One Handrail for all examples, and what it wrote down since the last look."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        (folder / "workspace").mkdir()
        (folder / "workspace" / "a.txt").write_text("one\ntwo\n")
        self.state = folder / "state"
        self.rail = Handrail(
            folder / "workspace", mode="full", state_dir=self.state, settings=settings, tools=[echo], session="fuzz"
        )
        self.seq = self.audited = 0

    def news(self) -> tuple[list[Any], list[str]]:
        """The events and the audited call ids since the last look."""
        events = list(self.rail.events(self.seq))
        self.seq += len(events)
        with (self.state / "audit.jsonl").open("rb") as lines:
            lines.seek(self.audited)
            records = [decode_record(line) for line in lines]
            self.audited = lines.tell()
        assert None not in records
        return events, [record[0].tool_call_id for record in records if record]

    def check(self, result: ToolResult[Any]) -> None:
        """One result of the one shape, journaled once and audited once."""
        shown = msgspec.json.decode(encode(result), type=ToolResult[Any])
        assert shown.ok == (shown.error is None)
        assert shown.error is None or shown.error.code in CODES
        assert shown.error is None or shown.error.code != "INTERNAL", shown.error.message
        assert len(shown.summary) < 2_000
        events, audited = self.news()
        assert all(isinstance(event, Event) for event in events), events
        assert [event.tool_call_id for event in events if isinstance(event, ToolCallStart)] == [shown.tool_call_id]
        ends = [event for event in events if isinstance(event, ToolCallEnd | ToolCallError)]
        assert [encode(event.result) for event in ends] == [encode(shown)]
        assert audited == [shown.tool_call_id]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        one = Bench(Path(folder), Settings())
        stack.enter_context(one.rail)
        yield one
        assert StoredState(str(one.state)).verify().problems == ()


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Bench]]:
    """One for each engine."""
    with ExitStack() as stack:
        made = {
            engine: Bench(tmp_path_factory.mktemp(engine), Settings(search=Search(engine=engine)))
            for engine in ("ripgrep", "python")
        }
        for one in made.values():
            stack.enter_context(one.rail)
        yield made


@given(names, arguments, versions, permissions)
@example("read", {"path": "a.txt"}, "2\ud800", None)
@example("echo", {"value": Odd()}, None, None)
@example("echo", {"value": endless()}, None, None)
@example("write", {"path": "n.txt", "content": "\ud800"}, None, None)
@example("edit", {"path": "a.txt", "oldText": "one", "newText": "\ud800"}, None, None)
@example("edit", {"path": "a.txt", "oldText": "\ud800", "newText": "x"}, None, None)
@example(5, {}, None, None)
@example("read", {"path": "a.txt"}, 1, None)
@example("read", {"path": "a.txt"}, None, 5)
@example("read", {"path": "a.txt"}, None, ("fs.chat",))
def test_any_call_has_one_result(bench: Bench, name: Any, args: Any, version: Any, requested: Any) -> None:
    bench.check(bench.rail.call(name, args, version=version, requested_permissions=requested))


@given(names, arguments, versions, permissions)
@example(5, {}, 5, 5)
@example(Odd(), Odd(), Odd(), Odd())
def test_any_call_of_a_batch_has_one_result(bench: Bench, name: Any, args: Any, version: Any, requested: Any) -> None:
    call = ToolCall(
        tool_call_id=make_id("call"),
        name=name,
        args=args,
        trace_id="trace",
        timestamp=datetime.now(UTC),
        version=version,
        requested_permissions=requested,
    )
    outcome = bench.rail.batch([call])
    assert isinstance(outcome, Done)
    bench.check(outcome.results[0])


@pytest.mark.parametrize("name", ["read", "write", "edit", "find", "grep", "ls", "echo"])
@given(data=st.data())
def test_any_arguments_of_any_tool_have_one_result(bench: Bench, name: str, data: st.DataObject) -> None:
    args = data.draw(st.dictionaries(keys, anything, max_size=4) | likely | own.get(name, likely))
    bench.check(bench.rail.call(name, args))


@pytest.mark.parametrize("engine", ["ripgrep", "python"])
@given(name_and_args=st.tuples(st.just("find"), finds) | st.tuples(st.just("grep"), greps))
@example(("find", {"pattern": "*", "exclude": ["\ud800"]}))
@example(("grep", {"pattern": "o", "filePattern": "\ud800"}))
@example(("grep", {"pattern": "o", "path": "a.txt\0"}))
def test_any_search_has_one_result_with_either_engine(
    benches: dict[str, Bench], engine: str, name_and_args: tuple[str, Any]
) -> None:
    one = benches[engine]
    one.check(one.rail.call(*name_and_args))


@pytest.mark.parametrize("value", [Mute(), Garbled(), {"path": Mute()}, {Garbled(): 1}, {"\ud800": 1}, [Mute()]])
@pytest.mark.parametrize("field", ["name", "args", "version", "requested_permissions"])
def test_a_value_that_cannot_be_shown_has_one_result(bench: Bench, field: str, value: Any) -> None:
    call: dict[str, Any] = {"name": "read", "args": {"path": "a.txt"}, field: value}
    bench.check(bench.rail.call(**call))
