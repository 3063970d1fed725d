"""read: the kept output of an earlier call, in rows, so that pages joined are exactly the text."""

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handrail import Handrail
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.settings import Settings
from handrail.settings.model import Results
from handrail.tools.tool import Context, Output, Tool

Rail = Callable[..., Handrail]
Joined = Callable[..., str]


class SayArguments(Arguments, frozen=True):
    text: str


class SayData(Wire, frozen=True):
    pass


def say(_: Context, arguments: SayArguments) -> Output:
    return Output(summary="said", content=arguments.text, data=SayData())


SAY = Tool(
    ToolSpec(
        name="say", title="Say", description="Says a text.", arguments=SayArguments, data=SayData,
        category="custom", auto_execute=True,
    ),
    say,
)  # fmt: skip
SMALL = Settings(results=Results(characters=1_000, batch_characters=1_000))


@pytest.fixture
def one(rail: Rail) -> Handrail:
    return rail(tools=[SAY], settings=SMALL)


def kept(one: Handrail, text: str) -> str:
    result = one.call("say", {"text": text})
    assert result.ok
    assert result.meta.output == f"@output/{result.tool_call_id}"
    return result.meta.output


def test_a_line_of_a_megabyte_is_split_and_not_cut(one: Handrail, joined: Joined) -> None:
    text = "".join(chr(ord("a") + number % 26) for number in range(1 << 20))
    reference = kept(one, text)
    page = one.read(reference, limit=1)
    assert page.content == text[:2_000]
    assert page.meta.total == 525
    assert page.warnings == ()
    assert joined(one, reference) == text


@pytest.mark.parametrize(
    ("length", "rows"), [(2_000, [2_001]), (2_001, [2_000, 2]), (4_000, [2_000, 2_001]), (4_001, [2_000, 2_000, 2])]
)
def test_a_row_holds_two_thousand_characters_and_its_newline(one: Handrail, length: int, rows: list[int]) -> None:
    reference = kept(one, f"{'x' * length}\n")
    found = [one.read(reference, offset=number + 1, limit=1) for number in range(len(rows))]
    assert [len(row.content) for row in found] == rows
    assert [row.meta.next_offset for row in found] == [*range(2, len(rows) + 1), None]


def test_rows_count_from_the_end_too(one: Handrail) -> None:
    reference = kept(one, "".join(f"{number}\n" for number in range(5_000)))
    result = one.read(reference, offset=-3)
    assert result.content == "4997\n4998\n4999\n"
    assert (result.meta.total, result.data.first_line) == (5_000, 4_998)
    assert one.read(reference, offset=5_001).error.code == "INVALID_ARGUMENT"
    assert one.read(reference, offset=-9_999, limit=1).content == "0\n"


pieces = st.sampled_from(["\n", "\r\n", "x" * 1_999, "y" * 2_000, "🦀" * 900])
texts = st.lists(pieces | st.text(st.characters(codec="utf-8"), max_size=400), min_size=1, max_size=12).map("".join)


@given(texts, st.lists(st.integers(1, 30), min_size=1, max_size=4))
@example("x" * 2_000 + "\n", [1])
@example("\n" * 1_500, [7])
@example("\r" * 1_500, [7])
def test_pages_of_any_size_joined_are_exactly_the_text(rail: Rail, joined: Joined, text: str, sizes: list[int]) -> None:
    text = text * (1 + 1_001 // len(text)) if text else "x" * 1_001
    one = rail(tools=[SAY], settings=SMALL)
    assert joined(one, kept(one, text), itertools.cycle(sizes)) == text
    one.close()


def test_the_text_is_complete_and_its_hash_is_of_all_of_it(one: Handrail) -> None:
    import hashlib

    text = "grün\n" * 100_000
    data = one.read(kept(one, text)).data
    assert (data.size, data.hash) == (len(text.encode()), hashlib.sha256(text.encode()).hexdigest())


@pytest.mark.parametrize(
    "reference", ["@output/", "@output/none", "@output/../x", "@output/a/b", "@output/%", "@output/\0"]
)
def test_a_reference_that_is_none_is_not_found(one: Handrail, reference: str) -> None:
    assert one.read(reference).error.code == "NOT_FOUND"


def test_the_output_of_another_session_is_not_found(rail: Rail, one: Handrail) -> None:
    reference = kept(one, "secret " * 1_000)
    other = rail(tools=[SAY], settings=SMALL)
    error = other.read(reference).error
    assert error.code == "NOT_FOUND"
    assert one.read(reference).ok


def test_an_output_outlives_the_process(rail: Rail) -> None:
    first = rail(tools=[SAY], settings=SMALL, session="s1")
    reference = kept(first, "row\n" * 1_000)
    first.close()
    assert rail(tools=[SAY], settings=SMALL, session="s1").read(reference).meta.total == 1_000


WATCH = """
import os, sys
from handrail.tools.tool import Context, CallLimits
from handrail.tools.read import ReadArguments, build_read_tool
class Outputs:
    def open(self, call_id):
        return os.open(sys.argv[1], os.O_RDONLY)
def peak():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) // 1024
tool = build_read_tool(None, Outputs())
context = Context(session_id="", tool_call_id="", trace_id="", message_id=None, workspace=None, limits=CallLimits(),
                  cancelled=lambda: False, metadata=lambda: None)
before = peak()
for offset in (1, -10, 700, -10**9):
    output = tool.run(context, ReadArguments(path="@output/x", offset=offset, limit=10_000))
    assert 0 < len(output.content) <= 32_000
print(peak() - before)
"""


@pytest.mark.parametrize(
    "line", ["a line of some length like those that programs print\n", "🦀"], ids=["lines", "one-line"]
)
def test_memory_is_bounded_for_an_output_of_64_mb(tmp_path: Path, line: str) -> None:
    with (tmp_path / "blob").open("wb") as file:
        block = line.encode() * ((1 << 20) // len(line.encode()))
        for _ in range(64):
            file.write(block)
    source = str(Path(sys.modules["handrail"].__file__ or "").parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", WATCH, str(tmp_path / "blob")],
        env={"PYTHONPATH": source},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 32
