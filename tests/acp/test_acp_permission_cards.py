"""What a permission request is in an editor, whatever is in it."""

import pytest
from editor import CANCELLED, chose

from handrail.acp.permissions import build_card, build_options, parse_answer
from handrail.agent.cancel import TurnCancelledError
from handrail.protocol.changes import Preview
from handrail.protocol.permissions import PermissionRequest

DIFF = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"


def request(**fields) -> PermissionRequest:
    given = {
        "id": "ask_1",
        "tool_call_id": "call_1",
        "tool_name": "exec",
        "server_name": "handrail",
        "permission_type": "command",
        "description": "Run it",
        "rule": "exec.unproven",
        "reason": "handrail cannot prove that it changes nothing",
        "permissions": ("proc.exec",),
        "answers": ("once", "session", "workspace", "output", "deny"),
        "session_id": "s",
        "batch_id": "b",
        "grants": ("make",),
        "command": "make",
    }
    return PermissionRequest(**{**given, **fields})


def test_only_a_difference_is_shown_as_one() -> None:
    for kind, shown in (("diff", 1), ("run", 1), ("input", 0), ("none", 0)):
        card = build_card(request(preview=Preview(kind=kind, text=DIFF)), "/project")
        assert sum(one.type == "diff" for one in card.content) == shown, kind


def test_what_a_command_is_judged_by_is_no_place_to_go_to() -> None:
    paths = ("s/a/b/", "https://example.org")
    assert build_card(request(paths=paths), "/project").locations == []
    [place] = build_card(request(paths=("a.txt",), command=None, tool_name="delete"), "/project").locations
    assert place.path == "/project/a.txt"


def test_who_knows_only_the_kinds_of_buttons_takes_the_narrower_yes_and_the_plain_no() -> None:
    options = build_options(request())
    assert [(one.option_id, one.kind) for one in options] == [
        ("once", "allow_once"),
        ("workspace", "allow_always"),
        ("session", "allow_always"),
        ("deny", "reject_once"),
        ("output", "reject_always"),
    ]
    assert options[2].name == "Allow it, and stop asking for `make` in this session"
    one_button_a_kind = {one.kind: one.option_id for one in options}
    assert (one_button_a_kind["allow_always"], one_button_a_kind["reject_once"]) == ("session", "deny")


def test_plain_edits_are_a_button_and_the_question_is_in_the_card() -> None:
    asks = request(answers=("once", "session", "workspace", "edits", "deny"))
    assert [one.option_id for one in build_options(asks)] == ["once", "workspace", "edits", "session", "deny"]
    assert build_options(asks)[2].name == "Allow it, and allow plain edits in this session"
    assert parse_answer(chose("edits"), asks).kind == "edits"
    assert build_card(asks, "/project").content[0].content.text.endswith("\nRun this command?\n```")


def test_a_file_that_goes_is_no_place_to_go_to() -> None:
    gone = f"{DIFF}--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
    card = build_card(request(preview=Preview(kind="run", text=gone)), "/project")
    assert [one.path for one in card.content if one.type == "diff"] == ["/project/a.txt", "/project/b.txt"]
    assert [(one.path, one.line) for one in card.locations] == [("/project/a.txt", 1)]


def test_the_change_of_a_file_tool_comes_first_and_of_a_command_what_it_is() -> None:
    change = request(tool_name="edit", command=None, preview=Preview(kind="diff", text=DIFF))
    assert [one.type for one in build_card(change, "/project").content] == ["diff", "content"]
    tried = request(preview=Preview(kind="run", text=DIFF, output="said\n"))
    assert [one.type for one in build_card(tried, "/project").content] == ["content", "diff", "content"]


def test_an_answer_that_nobody_offered_is_a_no() -> None:
    some = request(answers=("once", "session", "deny"))
    with pytest.raises(TurnCancelledError):
        parse_answer(CANCELLED, some)
    for said, kind in (("session", "session"), ("workspace", "deny"), ("yes please", "deny"), ("", "deny")):
        assert parse_answer(chose(said), some).kind == kind
