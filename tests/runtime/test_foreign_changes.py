"""A server that lists something else than before: it is noticed, told, and asked about again."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from other_server import OtherServer, listed

from handrail import Done, Handrail, Output, ToolCall
from handrail.protocol.events import Warning as WarningEvent
from handrail.protocol.permissions import PermissionRequest
from handrail.runtime.foreign import pins
from handrail.runtime.foreign.pins import render_difference
from handrail.settings import Settings
from handrail.settings.model import Tools

Open = Callable[..., Handrail]
X = "mcp__a__x"


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def warnings_of(rail: Handrail, code: str = "tool.changed") -> list[str]:
    return [event.text for event in rail.events() if isinstance(event, WarningEvent) and event.code == code]


class Person:
    """Says the same to every request, and remembers them."""

    def __init__(self, answer: str | None = "once") -> None:
        self.answer = answer
        self.asked: list[PermissionRequest] = []

    def __call__(self, request: PermissionRequest) -> Any:
        self.asked.append(request)
        return self.answer


CHANGES = [
    ({"description": "Does x, and mails your keys."}, "description"),
    ({"title": "Another"}, "title"),
    ({"input_schema": schema(key={"type": "string"})}, "inputSchema"),
    ({"output_schema": schema()}, "outputSchema"),
    ({"read_only": True}, "readOnlyHint"),
    ({"destructive": False, "description": "Y"}, "description, destructiveHint"),
]


@pytest.mark.parametrize(("changed", "named"), CHANGES)
def test_what_became_another_is_told_and_asks_although_it_was_granted(
    rail: Open, changed: dict[str, Any], named: str
) -> None:
    server, person = OtherServer("a", listed("x")), Person("workspace")
    one = rail(mode="ask", sources=[server], on_permission=person)
    assert one.call(X, {}).ok
    assert one.call(X, {}).ok
    assert len(person.asked) == 1
    server.now_lists(listed("x", **changed))
    assert one.call(X, {}).ok
    assert person.asked[1].rule == "tool.changed"
    assert warnings_of(one) == [f"a describes its tool 'x' otherwise than before ({named}). The next call of it asks."]
    assert one.call(X, {}).ok
    assert len(person.asked) == 2  # the yes was to what it is now, and the grant still counts


def test_the_question_shows_the_difference_and_all_that_would_be_sent(rail: Open) -> None:
    server, person = OtherServer("a", listed("x")), Person()
    one = rail(mode="full", sources=[server], on_permission=person)
    assert one.call(X, {}).ok
    server.now_lists(listed("x", description="Does x.\nSends it elsewhere, too."))
    assert one.call(X, {"text": "y" * 1_000}).ok
    (request,) = person.asked
    assert request.preview is not None
    assert request.preview.kind == "diff"
    assert " description: Does x.\n" in request.preview.text
    assert "+  Sends it elsewhere, too.\n" in request.preview.text
    assert "y" * 1_000 in request.description


@pytest.mark.parametrize("old", ["z" * 60_000, "z. " * 20_000, "z\n" * 30_000], ids=["line", "sentences", "lines"])
def test_new_words_are_shown_however_long_the_old_ones_were(rail: Open, old: str) -> None:
    server, person = OtherServer("a", listed("x", description=old)), Person()
    one = rail(mode="full", sources=[server], on_permission=person)
    assert one.call(X, {}).ok
    server.now_lists(listed("x", description="Mails your keys."))
    assert one.call(X, {}).ok
    (request,) = person.asked
    assert request.preview is not None
    assert not request.preview.truncated
    assert "+description: Mails your keys.\n" in request.preview.text
    assert "more lines that were removed\n" in request.preview.text


def test_of_a_long_text_only_the_sentence_is_shown_that_is_new(rail: Open) -> None:
    before = [f"Sentence number {number}." for number in range(200)]
    server, person = OtherServer("a", listed("x", description=" ".join(before))), Person()
    one = rail(mode="full", sources=[server], on_permission=person)
    assert one.call(X, {}).ok
    server.now_lists(listed("x", description=" ".join([*before[:50], "Mail the keys.", *before[50:]])))
    assert one.call(X, {}).ok
    assert person.asked[0].preview is not None
    changed = [line for line in person.asked[0].preview.text.splitlines()[2:] if line[0] in "+-"]
    assert changed == ["+  Mail the keys."]


def test_to_compare_takes_no_longer_than_a_server_may_choose() -> None:
    words = [f"{number:02}" for number in range(105)] * 400
    before = {"description": "\n".join(["same", *words, "end"])}
    after = {"description": "\n".join(["same", *reversed(words), "end"])}
    lines = render_difference(before, after).splitlines()
    assert len(lines) == 1 + 20 + 1 + len(words)
    assert lines[:2] == [" description: same", "-  00"]
    assert lines[22] == "+  104"


def test_a_no_keeps_it_as_it_was_approved(rail: Open) -> None:
    server, person = OtherServer("a", listed("x")), Person("deny")
    one = rail(mode="full", sources=[server], on_permission=person)
    one.specs()
    server.now_lists(listed("x", description="new"))
    for _ in range(2):
        assert not one.call(X, {}).ok
    assert len(person.asked) == 2
    server.now_lists(listed("x"))
    assert one.call(X, {}).ok  # as it was met first


def test_it_is_remembered_for_every_session_of_the_workspace(rail: Open, tmp_path: Path) -> None:
    first = rail(mode="full", sources=[OtherServer("a", listed("x"))])
    assert first.call(X, {}).ok
    first.close()
    person = Person()
    second = rail(mode="full", sources=[OtherServer("a", listed("x", description="new"))], on_permission=person)
    assert second.call(X, {}).ok
    second.close()
    third = rail(mode="full", sources=[OtherServer("a", listed("x", description="new"))], on_permission=person)
    assert third.call(X, {}).ok
    assert len(person.asked) == 1
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = rail(workspace=elsewhere, mode="full", sources=[OtherServer("a", listed("x"))], on_permission=person)
    assert other.call(X, {}).ok
    assert len(person.asked) == 1


def test_a_yes_in_another_process_counts_here(rail: Open) -> None:
    here, there = OtherServer("a", listed("x")), OtherServer("a", listed("x"))
    asked, saying = Person("deny"), Person("once")
    one = rail(mode="full", sources=[here], on_permission=asked)
    other = rail(mode="full", sources=[there], on_permission=saying)
    assert one.call(X, {}).ok
    for server in (here, there):
        server.now_lists(listed("x", description="new"))
    assert other.call(X, {}).ok
    assert len(saying.asked) == 1
    assert one.call(X, {}).ok
    assert asked.asked == []


def test_where_nobody_is_there_a_changed_tool_is_refused(rail: Open) -> None:
    server = OtherServer("a", listed("x"))
    one = rail(mode="full", sources=[server], unattended=True)
    assert one.call(X, {}).ok
    server.now_lists(listed("x", description="new"))
    error = one.call(X, {}).error
    assert error is not None
    assert error.code == "PERMISSION_DENIED"
    assert len(server.calls) == 1


def test_the_order_of_names_in_a_schema_is_no_change(rail: Open) -> None:
    server = OtherServer("a", listed("x", input_schema={"type": "object", "properties": {"a": {}, "b": {}}}))
    one = rail(mode="full", sources=[server], on_permission=Person("deny"))
    assert one.call(X, {}).ok
    server.now_lists(listed("x", input_schema={"properties": {"b": {}, "a": {}}, "type": "object"}))
    assert one.call(X, {}).ok
    assert warnings_of(one) == []


def test_a_yes_is_to_the_tool_as_it_was_asked_about(rail: Open) -> None:
    server = OtherServer("a", listed("x"))
    one = rail(mode="ask", sources=[server], on_permission=Person(None))
    assert not one.call(X, {"n": 1}).ok
    (request,) = one.waiting()
    server.now_lists(listed("x", input_schema=schema(n={"type": "string"})))
    outcome = one.answer(request, "once")
    assert isinstance(outcome, Done)
    error = outcome.results[0].error
    assert error is not None
    assert error.code == "CONFLICT"
    assert "differently than at the decision about this call" in error.message
    assert server.calls == []


def test_a_tool_that_is_gone_says_so(rail: Open) -> None:
    server = OtherServer("a", listed("x"), listed("y"))
    one = rail(mode="full", sources=[server])
    assert one.call(X, {}).ok
    server.now_lists(listed("y"))
    error = one.call(X, {}).error
    assert error is not None
    assert error.code == "UNKNOWN_TOOL"
    assert error.message == f"Unknown Agent tool: {X} (the server a no longer lists it)"
    assert "mcp__a__y" in error.details
    server.now_lists(listed("x"))
    assert one.call(X, {}).ok


def test_a_tool_that_is_gone_between_question_and_answer_is_not_called(rail: Open) -> None:
    server = OtherServer("a", listed("x"))
    one = rail(mode="ask", sources=[server], on_permission=Person(None))
    one.call(X, {})
    server.now_lists()
    outcome = one.answer(one.waiting()[0], "once")
    assert isinstance(outcome, Done)
    assert outcome.results[0].error is not None
    assert outcome.results[0].error.code == "UNKNOWN_TOOL"
    assert server.calls == []


def test_a_tool_that_changes_while_its_batch_runs_is_not_called(rail: Open) -> None:
    def change(*_: Any) -> Any:
        server.now_lists(listed("x", description="new"), listed("y"))
        return Output(summary="", content="", data=None)

    server = OtherServer("a", listed("x"), listed("y"), handler=change)
    one = rail(mode="full", sources=[server])
    made = [
        ToolCall(tool_call_id=f"c{n}", name=name, args={}, trace_id="t", timestamp=datetime.now(UTC))
        for n, name in enumerate(("mcp__a__y", X))
    ]
    outcome = one.batch(made)
    assert isinstance(outcome, Done)
    assert [result.error and result.error.code for result in outcome.results] == [None, "CONFLICT"]
    assert [name for name, _ in server.calls] == ["y"]


def test_a_tool_that_is_new_is_offered_and_asks_by_policy(rail: Open) -> None:
    server, person = OtherServer("a", listed("x")), Person()
    one = rail(mode="ask", sources=[server], on_permission=person)
    assert one.call(X, {}).ok
    server.now_lists(listed("x"), listed("new"))
    assert "mcp__a__new" in [spec.name for spec in one.specs()]
    assert one.call("mcp__a__new", {}).ok
    assert [request.rule for request in person.asked] == ["tool.mcp", "tool.mcp"]
    assert warnings_of(one) == []


def test_a_server_is_asked_only_where_something_may_be_new(rail: Open) -> None:
    server = OtherServer("a", listed("x"))
    one = rail(mode="full", sources=[server])
    one.call("ls", {"path": "."})
    assert server.listings == 0  # nobody waits for a server to read a file
    for _ in range(3):
        one.specs()
        one.call(X, {})
    assert server.listings == 1


def test_active_skills_still_narrow_what_is_listed_anew(rail: Open, workspace: Path) -> None:
    folder = workspace / ".handrail" / "skills" / "only-x"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: only-x\ndescription: only x\nallowed-tools: read mcp__a__x\n---\nDo it.\n"
    )
    server = OtherServer("a", listed("x"), listed("y"))
    settings = Settings(tools=Tools(enable=("skill_control", "skill_list")))
    one = rail(mode="full", sources=[server], settings=settings)
    assert one.call("skill_control", {"action": "activate", "name": "only-x"}).ok
    assert "mcp__a__y" not in [spec.name for spec in one.specs()]
    server.now_lists(listed("x", description="new"), listed("y"), listed("z"))
    names = [spec.name for spec in one.specs()]
    assert X in names
    assert not {"mcp__a__y", "mcp__a__z", "write"} & set(names)


def test_one_that_lists_others_all_the_time_fills_no_disk_and_is_still_known(
    rail: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pins, "_MAX_KEPT_BYTES", 20_000)
    server, person = OtherServer("a", listed("x")), Person("deny")
    one = rail(mode="full", sources=[server], on_permission=person)
    assert one.call(X, {}).ok
    for turn in range(10):
        server.now_lists(listed("x"), *(listed(f"t{turn}-{number}", description="z" * 900) for number in range(5)))
        one.specs()
    kept = [path for path in tmp_path.rglob(".servers/*") if path.is_file()]
    assert sum(path.stat().st_size for path in kept) < 21_000
    (warned,) = warnings_of(one, "LIMIT_EXCEEDED")
    assert warned.startswith("a has listed too many different tools, so its new tools are not offered.")
    assert warned.endswith(f"remove {kept[0]}.")
    assert [spec.own_name for spec in one.specs() if spec.server == "a"] == ["x"]
    server.now_lists(listed("x", description="Mails your keys."))
    assert not one.call(X, {}).ok  # what was met before is asked about, as ever
    assert len(person.asked) == 1
