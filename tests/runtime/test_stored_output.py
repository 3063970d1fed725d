"""Content over the budget: a preview and a reference that gives the whole text back."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Done, Handrail, Output, Tool, ToolCall, tool
from handrail.settings import Settings
from handrail.settings.model import Results, Tools
from handrail.store.conversation_state import truncate_with_reference

Make = Callable[..., Handrail]
SMALL = Settings(results=Results(characters=1_000, batch_characters=5_000))


def speaker(text: str = "") -> Tool:
    @tool(read_only=True, auto_execute=True)
    def speak(characters: int = 0) -> str:
        """Says something long."""
        return text or "".join(f"line {number}\n" for number in range(characters))[:characters]

    return speak


def all_pages(rail: Handrail, reference: str) -> str:
    """Everything behind a reference, page by page."""
    pages: list[str] = []
    offset: int | None = 1
    while offset is not None:
        page = rail.read(reference, offset=offset)
        assert page.ok, page.summary
        pages.append(page.content)
        offset = page.meta.next_offset
    return "".join(pages)


def call(call_id: str, name: str, **args: Any) -> ToolCall:
    return ToolCall(tool_call_id=call_id, name=name, args=args, trace_id=call_id, timestamp=datetime.now(UTC))


def test_content_within_the_budget_is_whole(rail: Make) -> None:
    result = rail(tools=[speaker()], settings=SMALL).call("speak", {"characters": 1_000})
    assert (len(result.content), result.meta.truncated, result.meta.output) == (1_000, False, None)


def test_content_over_the_budget_is_a_preview_of_both_ends_with_a_reference(rail: Make) -> None:
    one = rail(tools=[speaker()], settings=SMALL)
    result = one.call("speak", {"characters": 50_000}, tool_call_id="x")
    whole = "".join(f"line {number}\n" for number in range(50_000))[:50_000]
    assert (result.meta.truncated, result.meta.output, result.meta.characters) == (True, "@output/x", 50_000)
    assert len(result.content) <= 1_000
    assert result.content.startswith("line 0\nline 1\n")
    assert result.content.endswith(whole[-500:])
    assert "read @output/x for all of it" in result.content
    assert all_pages(one, "@output/x") == whole


@pytest.mark.parametrize(
    "text",
    [
        "x" * 20_000,
        "x" * 20_000 + "\n",
        "short\n" + "y" * 20_000 + "\nshort\n",
        "\n" * 20_000,
        "ä🎈\r\n" * 3_000,
        ("z" * 2_500 + "\n") * 20,
        "a\x00b\x1b[0m\n" * 2_000,
        "\u2028\u2029\x0b\x0c\x85" * 2_000,
    ],
)
def test_pages_joined_give_the_text_back(rail: Make, text: str) -> None:
    one = rail(tools=[speaker(text)], settings=SMALL)
    result = one.call("speak", {})
    assert result.meta.output is not None
    assert len(result.content) <= 1_000
    assert all_pages(one, result.meta.output) == text


def test_a_reference_is_good_after_a_reopen_and_in_its_own_session_only(rail: Make) -> None:
    with rail(session="s", tools=[speaker()], settings=SMALL) as one:
        reference = one.call("speak", {"characters": 5_000}).meta.output
        assert reference is not None
    with rail(session="s", settings=SMALL) as one:
        assert len(all_pages(one, reference)) == 5_000
    with rail(session="t", settings=SMALL) as one:
        refused = one.read(reference)
    assert refused.error is not None
    assert refused.error.code == "NOT_FOUND"


@pytest.mark.parametrize("reference", ["@output/", "@output/none", "@output/../x", "@output/x/y", "@output/\0"])
def test_a_reference_to_nothing_is_not_found(rail: Make, reference: str) -> None:
    result = rail().read(reference)
    assert result.error is not None
    assert result.error.code == "NOT_FOUND"


def test_the_same_text_is_stored_once(rail: Make, tmp_path: Path) -> None:
    one = rail(tools=[speaker()], settings=SMALL)
    for _ in range(3):
        one.call("speak", {"characters": 5_000})
    assert len([path for path in (tmp_path / "state" / "blobs").rglob("*") if path.is_file()]) == 1


@pytest.mark.parametrize("settings", [{"disable": ("read",)}, {"deny": ("fs.read",)}])
def test_nothing_is_offloaded_in_a_session_that_cannot_read_it_back(rail: Make, settings: Any) -> None:
    one = rail(tools=[speaker()], settings=Settings(results=SMALL.results, tools=Tools(**settings)))
    result = one.call("speak", {"characters": 5_000})
    assert (result.meta.output, result.meta.truncated) == (None, True)
    assert len(result.content) <= 1_000
    assert "characters were left out" in result.content


def test_read_itself_is_never_offloaded(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("".join(f"{number}\n" for number in range(5_000)))
    result = rail(settings=SMALL).read("a.txt")
    assert (result.meta.output, result.meta.truncated) == (None, True)
    assert len(result.content) <= 1_000
    assert result.content.endswith("\n")
    assert result.meta.next_offset == result.content.count("\n") + 1


def test_a_batch_has_a_budget_of_its_own(rail: Make) -> None:
    settings = Settings(results=Results(characters=4_000, batch_characters=10_000))
    one = rail(tools=[speaker()], settings=settings)
    outcome = one.batch([call(str(number), "speak", characters=4_000) for number in range(8)])
    assert isinstance(outcome, Done)
    lengths = [len(result.content) for result in outcome.results]
    assert lengths[:2] == [4_000, 4_000]
    assert all(1_000 < length <= 2_000 for length in lengths[2:])
    for result in outcome.results[2:]:
        assert result.meta.output is not None
        assert len(all_pages(one, result.meta.output)) == 4_000


def test_a_tool_is_told_its_budget(rail: Make) -> None:
    def run(context: Any, _: Any) -> Output:
        return Output(summary="x", content=str(context.limits.characters), data=None)

    plain = tool(lambda: "x", name="asks", description="Asks.", read_only=True, auto_execute=True)
    one = rail(tools=[Tool(plain.spec, run), speaker()], settings=SMALL)
    assert one.call("asks", {}).content == "1000"
    outcome = one.batch([*(call(str(n), "speak", characters=1_000) for n in range(4)), call("a", "asks")])
    assert isinstance(outcome, Done)
    assert outcome.results[-1].content == "1000"  # what is left, but no less than a page


@given(
    text=st.text(st.sampled_from("ab\n\r"), min_size=0, max_size=50).map(lambda part: part * 200),
    budget=st.integers(1_000, 5_000),
)
def test_a_preview_fits_its_budget_and_shows_both_ends(text: str, budget: int) -> None:
    if len(text) <= budget:
        return
    shown = truncate_with_reference(text, budget, "@output/call_0123456789abcdef0123456789abcdef")
    assert len(shown) <= budget
    head, _, rest = shown.partition("\n… ")
    tail = rest.partition(" …\n")[2]
    assert head
    assert tail
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) > budget // 3
    omitted = int(rest.split()[0].replace(",", ""))
    assert len(head) + omitted + len(tail) == len(text)
