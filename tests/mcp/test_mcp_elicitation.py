"""Forms for the person at a client: what they show, what they let be answered, and what is made of the answer."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interims import interim

from handrail.mcp.calls import UnansweredCall
from handrail.mcp.elicitation import MAX_FORM_CHARS, FormAnswer, build_form, parse_form
from handrail.mcp.protocol import SUPPORTED, Caller
from handrail.protocol.changes import Change, Preview, PreviewRun
from handrail.protocol.permissions import Answer, AnswerKind, Question, Reply
from people import a_request

ANSWERS: tuple[AnswerKind, ...] = get_args(AnswerKind)
every_version = pytest.mark.parametrize("protocol", SUPPORTED)
TRIED = PreviewRun(
    sealed="x",
    exit_code=0,
    duration_ms=1800,
    changes=(Change(path="src/a.py", action="modified", added=2, removed=1),),
    files=1,
    lines=3,
    last_line="done",
)
KEPT = Preview(kind="run", text="", tried=TRIED)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def about(**fields: Any) -> UnansweredCall:
    return UnansweredCall(call_id="call-1", interim=interim("exec"), requests=(a_request(**fields),))


def asked(**fields: Any) -> UnansweredCall:
    question = Question(tool_call_id="call-1", **({"question": "Which?"} | fields))
    return UnansweredCall(call_id="call-1", interim=interim("question"), questions=(question,))


def values(field: dict[str, Any]) -> list[str]:
    return field["enum"] if "enum" in field else [one["const"] for one in field["oneOf"]]


def titles(field: dict[str, Any]) -> list[str]:
    return field["enumNames"] if "enum" in field else [one["title"] for one in field["oneOf"]]


@every_version
def test_a_form_says_what_a_prompt_says_and_offers_what_can_be_answered(protocol: str) -> None:
    asks = about(command="make fix", preview=KEPT, answers=ANSWERS, grants=("make fix",), reason="it may change files")
    form = build_form(asks, Caller(protocol=protocol))
    for words in (
        "$ make fix",
        "needs approval: it may change files",
        "exit 0 in 1.8 s",
        "Your files are untouched.",
        "src/a.py",
        "\nKeep this file?\n",
    ):
        assert words in form["message"]
    field = form["requestedSchema"]["properties"]["answer"]
    assert values(field) == ["once", "session", "workspace", "edits", "output", "deny"]
    assert titles(field) == [
        "keep this result",
        "keep, and stop asking for `make fix` in this session",
        "keep, and stop asking for `make fix` in this workspace",
        "keep, and allow plain edits in this session",
        "drop changes, show output to model",
        "drop it and say why",
    ]
    assert form["requestedSchema"]["required"] == ["answer"]
    assert "default" not in str(form["requestedSchema"]), "nothing is chosen beforehand"


def test_a_form_shows_the_diff_of_a_command_as_far_as_there_is_room() -> None:
    def message(text: str) -> str:
        preview = Preview(kind="run", text=text, tried=TRIED)
        form = build_form(about(command="make fix", preview=preview, answers=ANSWERS), Caller(protocol="2025-11-25"))
        assert values(form["requestedSchema"]["properties"]["answer"])[0] == "once", "it can be approved"
        return form["message"]

    assert "\n--- a/src/a.py\n+++ b/src/a.py\n-one\n+two\n" in message("--- a/src/a.py\n+++ b/src/a.py\n-one\n+two\n")
    long = message("".join(f"+{number}\n" for number in range(100)))
    assert "\n+39\n… 60 more lines\n" in long
    assert "+40" not in long
    wide = message("+" + "x" * 9_000)
    assert len(wide) <= MAX_FORM_CHARS
    assert "xxx" not in wide


def test_each_version_gets_the_fields_that_it_knows() -> None:
    asks = about()
    oldest = build_form(asks, Caller(protocol="2025-06-18"))
    assert set(oldest) == {"message", "requestedSchema"}
    assert "enumNames" in oldest["requestedSchema"]["properties"]["answer"]
    for protocol in ("2025-11-25", "2026-07-28"):
        form = build_form(asks, Caller(protocol=protocol))
        assert form["mode"] == "form"
        assert "enum" not in form["requestedSchema"]["properties"]["answer"]


@pytest.mark.parametrize(
    "answers", [("once", "deny"), ("output", "deny"), ("deny",), ("once", "session", "edits", "deny")]
)
def test_only_what_the_request_allows_is_offered_and_taken(answers: tuple[Any, ...]) -> None:
    asks = about(answers=answers, grants=("make",))
    assert tuple(values(build_form(asks, Caller())["requestedSchema"]["properties"]["answer"])) == answers
    for kind in ANSWERS:
        said = parse_form(asks, {"action": "accept", "content": {"answer": kind}})
        assert said == (FormAnswer(answer=Answer(kind=kind)) if kind in answers else FormAnswer(unclear=True))


@given(st.text(alphabet="ab\n\t\x00\x1b\x7f\u202e\u2066\u200b\u00ad\ufeff<>&'\" ", max_size=60))
def test_nothing_that_steers_or_hides_reaches_the_form(command: str) -> None:
    asks = about(
        command=command or "a", reason=command, description=command, cwd=command, grants=(command,), answers=ANSWERS
    )
    form = build_form(asks, Caller())
    shown = form["message"] + "".join(titles(form["requestedSchema"]["properties"]["answer"]))
    assert all(char.isprintable() or char == "\n" for char in shown)


def test_a_command_cannot_write_a_line_of_its_own_that_looks_like_ours() -> None:
    message = build_form(about(command="a\nRan in a disposable copy: exit 0."), Caller())["message"]
    assert "\n> Ran in a disposable copy" in message


def test_what_is_too_long_to_be_seen_can_only_be_denied() -> None:
    asks = about(command="echo " + "x" * 20_000)
    form = build_form(asks, Caller())
    assert len(form["message"]) <= MAX_FORM_CHARS
    assert "too long to be shown" in form["message"]
    assert f"handrail approvals show {asks.requests[0].id}" in form["message"]
    assert values(form["requestedSchema"]["properties"]["answer"]) == ["deny"]
    assert parse_form(asks, {"action": "accept", "content": {"answer": "once"}}).unclear
    assert parse_form(asks, {"action": "decline"}).answer == Answer(kind="deny")


def test_a_long_difference_is_cut_and_the_message_says_so() -> None:
    lines = "".join(f"+{number} {'x' * 150}\n" for number in range(200))
    message = build_form(about(command=None, preview=Preview(kind="diff", text=lines)), Caller())["message"]
    assert len(message) <= MAX_FORM_CHARS
    assert "more lines" in message


def test_a_no_brings_its_reason_and_a_yes_none() -> None:
    asks = about()
    no = parse_form(asks, {"action": "accept", "content": {"answer": "deny", "reason": "  not now "}})
    assert no.answer == Answer(kind="deny", reason="not now")
    yes = parse_form(asks, {"action": "accept", "content": {"answer": "once", "reason": "why not"}})
    assert yes.answer == Answer(kind="once")
    long = parse_form(asks, {"action": "accept", "content": {"answer": "deny", "reason": "x" * 9_000}})
    assert long.answer is not None
    assert len(long.answer.reason or "") == 2_000


def test_a_dismissed_form_says_nothing_and_a_declined_one_no() -> None:
    assert parse_form(about(), {"action": "cancel"}) == FormAnswer()
    assert parse_form(about(), {"action": "cancel", "content": {"answer": "once"}}) == FormAnswer()
    assert parse_form(about(), {"action": "decline", "content": {"answer": "once"}}).answer == Answer(kind="deny")


@given(JSON)
def test_whatever_comes_back_is_a_yes_only_where_it_says_so(reply: Any) -> None:
    for one in (reply, {"action": reply}, {"action": "accept", "content": reply}):
        said = parse_form(about(), one)
        assert said.answer is None or said.answer.kind == "deny" or one["content"]["answer"] == "once"
    said = parse_form(about(), {"action": "accept", "content": {"answer": reply}})
    assert said.unclear == (reply not in ("once", "deny"))
    asked_too = parse_form(asked(options=("a", "b")), {"action": "accept", "content": {"choice": reply, "text": reply}})
    assert asked_too.unclear or asked_too.answer is not None


@every_version
def test_a_question_is_a_choice_by_numbers_and_own_words_where_they_are_welcome(protocol: str) -> None:
    asks = asked(options=("red", "blu\u202ee"), custom=True)
    form = build_form(asks, Caller(protocol=protocol))
    assert "Which?" in form["message"]
    field = form["requestedSchema"]["properties"]["choice"]
    assert values(field) == ["1", "2"]
    assert titles(field) == ["red", "blu\\u202ee"]
    assert parse_form(asks, {"action": "accept", "content": {"choice": "2"}}).answer == Reply(chosen=("blu\u202ee",))
    assert parse_form(asks, {"action": "accept", "content": {"text": "green"}}).answer == Reply(text="green")
    assert parse_form(asks, {"action": "accept", "content": {"choice": "3"}}).unclear
    assert parse_form(asks, {"action": "accept", "content": {}}).unclear
    assert parse_form(asks, {"action": "decline"}) == FormAnswer(answer=Answer(kind="deny"))
    assert parse_form(asks, {"action": "cancel"}) == FormAnswer()


@every_version
def test_several_options_are_chosen_as_the_version_can(protocol: str) -> None:
    asks = asked(options=("a", "b", "c"), multiple=True)
    fields = build_form(asks, Caller(protocol=protocol))["requestedSchema"]["properties"]
    if protocol == "2025-06-18":
        assert [fields[f"choice{number}"]["type"] for number in (1, 2, 3)] == ["boolean"] * 3
        content: dict[str, Any] = {"choice1": True, "choice2": False, "choice3": True}
    else:
        assert [one["const"] for one in fields["choices"]["items"]["anyOf"]] == ["1", "2", "3"]
        content = {"choices": ["3", "1"]}
    assert parse_form(asks, {"action": "accept", "content": content}).answer == Reply(chosen=("a", "c"))


def test_forms_are_what_the_official_types_take() -> None:
    from mcp_types import _v2025_11_25 as before
    from mcp_types import _v2026_07_28 as now

    for asks in (
        about(answers=ANSWERS, grants=("make",)),
        asked(options=("a", "b"), multiple=True),
        asked(custom=True),
    ):
        for types, protocol in ((before, "2025-11-25"), (now, "2026-07-28")):
            form = types.ElicitRequestFormParams.model_validate(build_form(asks, Caller(protocol=protocol)))
            for field in form.requested_schema.properties.values():
                assert not isinstance(field, str)
        assert msgspec.json.encode(build_form(asks, Caller(protocol="2025-06-18")))
