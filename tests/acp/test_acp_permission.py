"""handrail acp: what asks is put to the person in the editor, with what would happen and the answers as buttons."""

import asyncio
import json
from pathlib import Path

from acp.schema import (
    AcceptElicitationResponse,
    ClientCapabilities,
    DeclineElicitationResponse,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
)
from editor import CANCELLED, chose, handrail, played

EDIT = {"text": "I change it. ", "calls": [["edit", {"path": "a.txt", "oldText": "two", "newText": "2"}]]}
RUN = {"text": "", "calls": [["exec", {"command": "echo said; echo new > new.txt"}]]}
DONE = {"text": "Done."}
FORMS = ClientCapabilities(elicitation=ElicitationCapabilities(form=ElicitationFormCapabilities()))


def test_a_yes_makes_the_change_that_the_card_showed(start, script, workspace: Path) -> None:
    async def scene() -> None:
        async with start("--model", script(EDIT, DONE), "--mode", "ask") as opened:
            editor, session = opened.editor, await opened.new()
            editor.answers.append(chose("once"))
            done = await opened.say(session, "make it 2")
            [asked] = editor.asked
            assert (done.stop_reason, asked.session) == ("end_turn", session)
            diff, told = asked.card.content
            assert "needs approval: ask mode asks before every write" in told.content.text
            assert "Preview from just now. Your files are untouched." in told.content.text
            assert told.content.text.endswith("Undo can revert it.\nChange a.txt?\n```")
            assert (diff.path, diff.old_text) == (str(workspace / "a.txt"), "one\ntwo\nthree\n")
            assert (asked.card.kind, asked.card.status) == ("edit", "pending")
            assert [(one.path, one.line) for one in asked.card.locations] == [(str(workspace / "a.txt"), 2)]
            assert [one.kind for one in asked.options] == ["allow_once", "allow_always", "reject_once"]
            edits = "Allow it, and allow plain edits in this session"
            assert asked.names == {"once": "Allow it, this once", "edits": edits, "deny": "Deny it"}
            assert asked.card.tool_call_id in {one.tool_call_id for one in editor.of("tool_call")}
            assert (workspace / "a.txt").read_text() == "one\n2\nthree\n"

    played(scene)


def test_plain_edits_are_allowed_for_the_session_by_a_button(start, script, workspace: Path) -> None:
    again = {"text": "", "calls": [["edit", {"path": "a.txt", "oldText": "three", "newText": "3"}]]}

    async def scene() -> None:
        async with start("--model", script(EDIT, again, DONE), "--mode", "ask") as opened:
            opened.editor.answers.append(chose("edits"))
            assert (await opened.say(await opened.new(), "make it 2")).stop_reason == "end_turn"
            assert len(opened.editor.asked) == 1, "the second edit does not ask"

    played(scene)
    assert (workspace / "a.txt").read_text() == "one\n2\n3\n"


def test_a_command_is_shown_as_its_trial_went_and_a_no_drops_it(start, script, workspace: Path) -> None:
    async def scene() -> None:
        async with start("--model", script(RUN, DONE), "--mode", "ask") as opened:
            editor, session = opened.editor, await opened.new()
            editor.answers.append(chose("deny"))
            assert (await opened.say(session, "go")).stop_reason == "end_turn"
            [asked] = editor.asked
            contents = [one.content.text if one.type == "content" else one for one in asked.card.content]
            assert "$ echo said; echo new > new.txt" in contents[0]
            assert asked.card.title == "echo said; echo new > new.txt"
            if "once" in asked.names and asked.names["once"] == "Keep this result":  # the machine can try commands
                assert (contents[1].path, contents[1].old_text) == (str(workspace / "new.txt"), None)
                assert "said" in contents[2]
                assert asked.names["output"] == "Drop changes, show output to model"
                assert [one.option_id for one in asked.options][-2:] == ["deny", "output"]
            card = editor.cards()["echo said; echo new > new.txt"]
            assert (card["status"], card["raw_output"]["code"]) == ("failed", "PERMISSION_DENIED")
            assert not (workspace / "new.txt").exists()

    played(scene)


def test_an_answer_that_was_not_offered_refuses_the_call_and_the_turn_goes_on(start, script, workspace: Path) -> None:
    async def scene() -> None:
        async with start("--model", script(EDIT, DONE), "--mode", "ask") as opened:
            opened.editor.answers.append(chose("workspace"))
            assert (await opened.say(await opened.new(), "make it 2")).stop_reason == "end_turn"
            [card] = opened.editor.cards().values()
            assert card["raw_output"]["code"] == "PERMISSION_DENIED"

    played(scene)
    assert (workspace / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_an_editor_that_says_cancelled_ends_the_turn(start, script, workspace: Path) -> None:
    async def scene() -> None:
        async with start("--model", script(EDIT, DONE), "--mode", "ask") as opened:
            editor, session = opened.editor, await opened.new()
            editor.answers.append(CANCELLED)
            assert (await opened.say(session, "make it 2")).stop_reason == "cancelled"
            assert editor.cards()["edit a.txt"]["status"] == "failed"
            assert (await opened.say(session, "and now?")).stop_reason == "end_turn"

    played(scene)
    assert (workspace / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_a_cancel_while_the_editor_asks_ends_the_turn(start, script, workspace: Path) -> None:
    async def scene() -> None:
        async with start("--model", script(EDIT, DONE), "--mode", "ask") as opened:
            editor, session = opened.editor, await opened.new()
            saying = asyncio.create_task(opened.say(session, "make it 2"))
            await editor.until(lambda: editor.asked)
            await opened.agent.cancel(session_id=session)
            await editor.answer(CANCELLED)
            assert (await saying).stop_reason == "cancelled"

    played(scene)
    assert (workspace / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_what_is_answered_elsewhere_goes_on_while_the_editor_still_asks(
    start, script, workspace: Path, environment: dict[str, str]
) -> None:
    async def scene() -> None:
        async with start("--model", script(EDIT, DONE), "--mode", "ask") as opened:
            editor, session = opened.editor, await opened.new()
            saying = asyncio.create_task(opened.say(session, "make it 2"))
            await editor.until(lambda: editor.asked)
            waiting = json.loads(handrail(environment, workspace, "approvals", "--json"))["waiting"]
            await asyncio.to_thread(handrail, environment, workspace, "approvals", "allow", waiting[0]["id"])
            assert (await saying).stop_reason == "end_turn"
            assert editor.cards()["edit a.txt"]["status"] == "completed"

    played(scene)
    assert (workspace / "a.txt").read_text() == "one\n2\nthree\n"


ASK = {"text": "", "calls": [["question", {"question": "Which colour?", "options": ["red", "blue"], "custom": True}]]}


def test_a_question_is_a_form_where_the_editor_has_forms(start, script) -> None:
    async def scene() -> None:
        async with start("--model", script(ASK, DONE), capabilities=FORMS) as opened:
            editor, session = opened.editor, await opened.new()
            editor.fill = lambda *_: AcceptElicitationResponse(action="accept", content={"choice": "blue"})
            assert (await opened.say(session, "paint it")).stop_reason == "end_turn"
            [(message, mode)] = editor.forms
            properties = mode.requested_schema.properties
            assert (message, mode.session_id) == ("Which colour?", session)
            assert (properties["choice"].enum, properties["text"].type) == (["red", "blue"], "string")
            [card] = editor.cards().values()
            assert "The person chose: blue" in card["content"][0]["content"]["text"]
            assert editor.words() == "Done."

    played(scene)


def test_a_question_that_the_person_puts_aside_is_told_to_the_model(start, script) -> None:
    async def scene() -> None:
        async with start("--model", script(ASK, DONE), capabilities=FORMS) as opened:
            editor, session = opened.editor, await opened.new()
            editor.fill = lambda *_: DeclineElicitationResponse(action="decline")
            assert (await opened.say(session, "paint it")).stop_reason == "end_turn"
            [card] = editor.cards().values()
            assert card["raw_output"]["code"] == "CANCELLED"

    played(scene)


def test_a_question_to_an_editor_without_forms_is_replied_to_by_the_next_prompt(start, script) -> None:
    async def scene() -> None:
        async with start("--model", script(ASK, DONE)) as opened:
            editor, session = opened.editor, await opened.new()
            assert (await opened.say(session, "paint it")).stop_reason == "end_turn"
            assert "Which colour?\n\n1. red\n2. blue\n" in editor.words()
            assert (await opened.say(session, "2")).stop_reason == "end_turn"
            [card] = editor.cards().values()
            assert "The person chose: blue" in card["content"][0]["content"]["text"]
            assert editor.words().endswith("Done.")

    played(scene)
