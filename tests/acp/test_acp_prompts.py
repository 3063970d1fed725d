"""handrail acp: what an editor is shown of a prompt."""

from pathlib import Path

from editor import played

EDIT = ["edit", {"path": "a.txt", "oldText": "two", "newText": "2"}]
DONE = {"text": "It is 2 now.", "spent": {"input_tokens": 1_000, "output_tokens": 20, "cost": 0.25}}


def test_a_prompt_streams_words_and_thoughts_and_cards_and_changes_the_file(
    start_apart, script, workspace: Path
) -> None:
    looked = {"reasoning": "Let me see.", "text": "I look. ", "calls": [["read", {"path": "a.txt", "offset": 2}]]}
    model = script(looked, {"text": "I change it. ", "calls": [EDIT]}, DONE)

    async def scene() -> None:
        async with start_apart("--model", model, "--mode", "auto") as opened:
            session = await opened.new()
            done = await opened.say(session, "make it 2")
            editor = opened.editor
            assert done.stop_reason == "end_turn"
            assert editor.words() == "I look. I change it. It is 2 now."
            assert "".join(one.content.text for one in editor.of("agent_thought_chunk")) == "Let me see."
            read, edit = editor.cards()["read `a.txt`"], editor.cards()["edit a.txt"]
            path = str(workspace / "a.txt")
            assert (read["kind"], read["status"]) == ("read", "completed")
            assert [(one["path"], one["line"]) for one in read["locations"]] == [(path, 2)]
            assert (edit["kind"], edit["status"], edit["raw_input"]) == ("edit", "completed", EDIT[1])
            [diff] = edit["content"]
            assert (diff["type"], diff["path"]) == ("diff", path)
            assert (diff["old_text"], diff["new_text"]) == ("one\ntwo\nthree\n", "one\n2\nthree\n")
            assert [(one["path"], one["line"]) for one in edit["locations"]] == [(path, 2)]
            [used] = editor.of("usage_update")
            assert (used.used, used.size, used.cost.amount) == (1_020, 200_000, 0.25)
            [named] = editor.of("session_info_update")
            assert named.title == "make it 2"
            assert (workspace / "a.txt").read_text() == "one\n2\nthree\n"

    played(scene)
