"""The keys and the slash commands of a session."""

import asyncio
import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from prompt_toolkit.history import InMemoryHistory
from tests.chat.conftest import DEEP, Chat
from tests.wires.openai_wire import events
from tests.wires.server import Answer

from handrail.agent.loop import Agent
from handrail.async_api import AsyncHandrail
from handrail.chat.composer import Composer
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.results import MAX_IMAGE_BYTES
from handrail.terminal.slash_hints import to_slash_commands

EDIT = {"text": "I change it.", "calls": [["edit", {"path": "a.txt", "oldText": "one", "newText": "two"}]]}
DONE = {"text": "All is done."}


def test_every_key_does_what_the_help_says(chat: Chat, workspace: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "from the editor" > "$1"\n')
    editor.chmod(0o700)
    (workspace / "notes.md").write_text("x\n")
    window = chat(EDIT, DONE, words=("--mode", "auto"), EDITOR=str(editor), VISUAL="")
    window.press("one\x1b\rtwo")
    window.sees("› one\n  two")
    window.press("\x1b[27;2;13~three")  # Shift+Enter
    window.sees("  two\n  three")
    window.press("\x7f" * 6)
    window.sees_no("three")
    window.press("\x0athree")
    window.sees("  two\n  three")
    window.press("\x03")
    window.sees_no("three")
    for mode in ("plan", "ask", "auto", "plan", "ask", "auto"):
        window.press("\x1b[Z")
        window.sees(f"mode {mode}")
    window.press("\x07")
    window.sees("› from the editor")
    window.press("\x03")
    window.press("see @ntes")
    window.sees("  notes.md\n auto ·")
    window.press("\t\r")
    window.sees("› see @notes.md")
    window.press("\x03")
    window.press("/po")
    window.sees("/policy")
    window.press("\x1b")
    window.sees_no("explain a decision")
    window.press("\x03")
    window.sends("begin")
    window.sees("All is done.")
    window.is_ready()
    window.press("\x0f")
    window.sees("edit: Edited a.txt")
    window.sees("arguments")
    window.press("q")
    window.is_ready()
    window.press("?")
    window.sees("shift+tab          mode: plan, ask, auto")
    window.press("\x12")
    window.sees("I-search backward:")
    window.press("beg")
    window.sees("› begin\nI-search backward: beg")
    window.press("\r")
    window.sees_no("I-search")
    window.press("\x03")
    window.press("\x03")
    window.sees("ctrl+c again: leave the session")
    window.press("\x03")
    assert window.program.ends() == 0
    assert "To continue this session: handrail chat -c" in window.text


def test_a_command_of_the_person_runs_under_the_same_undo_and_reaches_the_model(
    chat: Chat, workspace: Path, run_log
) -> None:
    window = chat(DONE, words=("--session", "task"))
    window.sends("!echo mine > b.txt; echo told")
    window.sees("\ntold\n")
    window.is_ready()
    assert (workspace / "b.txt").read_text() == "mine\n"
    assert "Permission" not in window.text
    window.sends("!echo failing; false")
    window.sees("\nfailing\n")
    window.is_ready()
    assert "    failing" not in window.text
    window.sends("go on")
    window.sees("All is done.")
    prompt = [event for event in run_log("task") if event["kind"] == "user"][-1]
    assert "$ echo mine > b.txt; echo told\n" in prompt["text"]
    window.sends(f"!echo begun; sleep 60; : {os.getpid()}")
    window.sees("    begun")
    window.press("\x1b")
    window.sees("The call was cancelled")
    window.is_ready()
    window.sends("/undo")
    window.sees("✓ undo")
    assert not (workspace / "b.txt").exists()


@DEEP
def test_a_pasted_command_of_the_person_needs_approval(chat: Chat, workspace: Path) -> None:
    window = chat(DONE)
    window.press("\x1b[200~!echo mine > b.txt\x1b[201~")
    window.sees("› !echo mine > b.txt")
    window.press("\r")
    window.sees("Permission · exec")
    window.answers(b"l", "Left for later")
    window.is_ready()
    window.press("\x1b[A")
    window.sees_after("Left for later", "› !echo mine > b.txt")
    window.press("\r")
    window.sees_after("Left for later", "Permission · exec")
    assert not (workspace / "b.txt").exists()


def test_only_text_that_was_typed_counts_as_typed() -> None:
    composer = Composer({}, tuple, InMemoryHistory())
    composer.buffer.insert_text("!make fmt")
    assert composer.was_typed
    composer.paste("!rm -rf build")
    assert not composer.was_typed
    composer.clear()
    assert composer.was_typed
    composer.put("!rm -rf build")  # a queued message that comes back, or an earlier prompt
    assert not composer.was_typed


def test_a_pasted_block_stays_whole_when_its_prompt_comes_back() -> None:
    composer = Composer({}, tuple, InMemoryHistory())
    block = "!rm -rf build\n" * 20
    composer.paste(block)
    shown = composer.buffer.text
    assert composer.take() == block
    composer.paste("other\n" * 20)
    assert composer.buffer.text != shown
    composer.put(shown)
    assert composer.text == block
    composer.clear()
    composer.buffer.insert_text(shown)
    assert not composer.was_typed


def test_a_line_of_the_history_is_not_typed() -> None:
    async def look_back() -> list[bool]:
        composer = Composer({}, tuple, InMemoryHistory(["!rm -rf build"]))
        composer.buffer.load_history_if_not_yet_loaded()
        while composer.buffer.text != "!rm -rf build":
            await asyncio.sleep(0)
            composer.buffer.history_backward()
        back = composer.was_typed
        composer.buffer.history_forward()
        return [back, composer.was_typed]

    assert asyncio.run(look_back()) == [False, True]


def test_a_plain_session_asks_about_each_command_of_the_person(chat: Chat, workspace: Path) -> None:
    window = chat(DONE, words=("--plain",), ready=False)
    window.sees("Your message (/help lists commands, Ctrl-D leaves):")
    window.press("!echo mine > b.txt\n")
    window.sees("3 or n: drop it and say why")
    assert not (workspace / "b.txt").exists()
    window.answers(b"1", "Your message")
    window.sees_after("3 or n", "Your message")
    assert (workspace / "b.txt").read_text() == "mine\n"


def test_rewinding_shows_the_diff_and_takes_files_and_conversation_back(chat: Chat, workspace: Path) -> None:
    window = chat(EDIT, DONE, {"text": "Second."}, words=("--mode", "auto"))
    window.sends("change it")
    window.sees("All is done.")
    window.is_ready()
    window.sends("and then")
    window.sees("Second.")
    window.is_ready()
    window.press("\x1b")
    window.sees("esc again: go back")
    window.press("\x1b")
    window.sees("> and then\n  change it")
    window.press("\x1b[B")
    window.sees("> change it")
    window.press("\r")
    window.sees("1 - two")
    assert (workspace / "a.txt").read_text() == "two\n"
    window.press("q")
    window.sees("> both          undo 1 change; continue before this prompt")
    window.press("\r")
    window.sees("✓ undo")
    window.sees("› change it\n auto ·")
    assert (workspace / "a.txt").read_text() == "one\n"
    window.press("\r")
    window.sees_in_scrollback("undo 3")
    assert (workspace / "a.txt").read_text() == "two\n"
    window.is_ready()
    window.sends("/rewind")
    window.sees("> change it")
    window.press("\r")
    window.sees("a.txt · 1 of 2")
    window.press("q")
    window.sees("> both")
    window.press("\x1b[B")
    window.sees("> files")
    window.press("\x1b[B")
    window.sees("> conversation")
    window.press("\r")
    window.sees_after("undo 3", "› change it\n auto ·")
    assert (workspace / "a.txt").read_text() == "two\n"


def test_slash_commands_answer(chat: Chat) -> None:
    window = chat(DONE, {"text": "Again."}, words=("--session", "task"))
    window.sends("begin")
    window.sees("All is done.")
    window.is_ready()
    for typed, shown in (
        ("/help", "suspend"),
        ("/udno", "error: there is no command /udno. Nothing was done.\nnext: /undo\n"),
        ("/udno 1", "next: /undo\n"),
        ("/xyz", "error: there is no command /xyz. Nothing was done.\nnext: /help\n"),
        (
            "/mode full",
            "error: full mode needs the flag --mode full or the user file. The mode was not changed.\nnext: ",
        ),
        ("/mode fast", "error: there is no mode fast. The mode was not changed.\nnext: /mode ask\n"),
        ("/mode plan", "mode plan"),
        ("!touch x", "error: exec touch x is denied by rule fs.write: "),
        ("!touch y", "next: handrail policy explain -- 'touch y'\n"),
        ("/model", "model scripted:"),
        ("/ps", "nothing is running here\n"),
        ("/approvals", "nothing is granted"),
        ("/policy explain rm -rf build", "fs.delete"),
        ("/compact", "The conversation is too short to be summarized. Nothing was changed."),
        ("/continue", "Nothing waits: the last turn has ended."),
        ("/diff", "error: no change is in effect in this workspace.\nnext: /log changes\n"),
        ("/undo 99", "error: there is no change 99. Nothing was changed. (NOT_FOUND)\nnext: /log changes\n"),
        ("/diff 99", "error: there is no change 99.\nnext: /log changes\n"),
        ("/undo x", "error: a change has a number, not 'x'. Nothing was done.\nnext: /log changes\n"),
        ("/ps kill 1", "error: 'kill' is unknown here. Use log, remove, stop.\nnext: /help\n"),
        ("/model nobody:x", "error: "),
        ("/log changes", "change"),
        ("/skills", "skill"),
        ("/doctor", "sandbox"),
        ("/fork", "This is a copy of session task"),
        ("/resume task", "session task"),
        ("/quit", "To continue this session: handrail chat -c"),
    ):
        window.sends(typed)
        if typed != "/quit":
            window.sees_after(f"› {typed}", shown)
            window.is_ready()
    assert window.program.ends() == 0
    assert "To continue this session: handrail chat -c" in window.text


def test_a_diff_is_shown_file_by_file_and_a_turn_is_undone(chat: Chat, workspace: Path) -> None:
    write = {"calls": [["write", {"path": "b.txt", "content": "new\n"}]]}
    window = chat(EDIT, write, DONE, words=("--mode", "auto"))
    window.sends("begin")
    window.sees("2 files changed")
    window.is_ready()
    window.sends("/diff turn")
    window.sees("a.txt · 1 of 2, 0 read")
    window.sees("1 - one\n    1 + two")
    window.press("]")
    window.sees("b.txt · 2 of 2, 0 read")
    window.sees("1 + new")
    window.press("[")
    window.sees("a.txt · 1 of 2, 0 read")
    window.press("q")
    window.is_ready()
    window.sends("/undo turn")
    window.sees("✓ undo")
    assert (workspace / "a.txt").read_text() == "one\n"
    assert not (workspace / "b.txt").exists()


def test_another_model_is_chosen_by_its_name(chat: Chat, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('[{"text": "First of the other."}, {"text": "I am the other."}]')
    window = chat(DONE)
    window.sends("begin")
    window.sees("All is done.")
    window.is_ready()
    window.sends(f"/model scripted:{tmp_path}/other.json")
    window.sees_after("› /model", "model scripted:")
    window.sends("and you?")
    window.sees("I am the other.")


def test_a_long_conversation_is_replaced_by_a_summary(
    chat: Chat, workspace: Path, environment: dict[str, str], openai_wire
) -> None:
    async def talk() -> None:
        async with AsyncHandrail(workspace, session="task", state_dir=environment["HANDRAIL_STATE_DIR"]) as rail:
            agent = Agent(rail, ScriptedModel([ScriptedReply(text="word " * 8_000)] * 6))
            for number in range(6):
                await agent.run(f"{number}?")

    asyncio.run(talk())
    openai_wire.sends(Answer(pieces=tuple(events("They counted."))))
    words = ("--session", "task", "--model", openai_wire.model)
    window = chat(words=words, **openai_wire.environment)
    window.sends("/compact")
    window.sees_after("› /compact", "A summary replaced ")
    window.sees("The log has all messages.")
    window.is_ready()
    assert "word word" in json.dumps(openai_wire.received[0].body), "the model writes the summary"


@DEEP
def test_a_picture_goes_to_the_model_by_its_path_and_a_false_one_stays_a_name(
    chat: Chat, workspace: Path, run_log, openai_wire
) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
    (workspace / "shot.png").write_bytes(picture)
    (workspace / "false.png").write_text("no picture")
    (workspace / "large.png").write_bytes(picture + bytes(MAX_IMAGE_BYTES))
    openai_wire.sends(Answer(pieces=tuple(events("I see it."))))
    window = chat(words=("--session", "task", "--model", openai_wire.model), **openai_wire.environment)
    window.sends("look at shot.png false.png and large.png please")
    window.sees("I see it.")
    window.is_ready()
    shown = " ".join(window.text.split())
    assert "false.png is not a PNG, JPEG, GIF or WebP, so it is not attached." in shown
    assert "large.png is not attached." in shown
    prompt = next(event for event in run_log("task") if event["kind"] == "user")
    assert prompt["text"] == "look at [picture 1: shot.png] false.png and large.png please"
    assert base64.b64encode(picture).decode() in json.dumps(openai_wire.received[0].body)


def test_the_commands_of_a_session_break_between_words(chat: Chat) -> None:
    window = chat(DONE, columns=60)
    for typed, last in (("?", "leave the session"), ("/policy", "reading")):
        window.press(typed + "\r" * (typed != "?"))
        window.sees(last)
        window.is_ready()
    shown = window.text
    rows = [line for line in shown.splitlines() if "more: send now" in line or "once" in line]
    assert "once more" in " ".join(" ".join(rows).split())
    assert re.search(r"(^|\s)reading\b", shown, re.M)


def test_completing_a_file_is_no_call(chat: Chat, workspace: Path, run_log) -> None:
    (workspace / "notes.md").write_text("x\n")
    window = chat(DONE, words=("--session", "task"))
    window.press("see @not")
    window.sees("  notes.md\n ask ·")
    window.press("\t\r\r")
    window.sees("All is done.")
    assert {event["kind"] for event in run_log("task")} <= {"user", "text", "end", "usage", "session.start"}


def test_hints_have_slash_commands() -> None:
    for text, expected in (
        ("to stop one: handrail processes stop ID", "to stop one: /ps stop ID"),
        ("nothing is running here; every workspace: --all", "nothing is running here"),
        ("`handrail log --changes` lists them", "`/log changes` lists them"),
        ("see: handrail diff 12", "see: /diff 12"),
        ("to reply: handrail approvals reply c1 NUMBER", "to reply: /continue"),
        ("handrail approvals revoke 3f ends it", "/approvals revoke 3f ends it"),
        ("handrail processes write p-1 yes", "handrail processes write p-1 yes"),
        ("handrail log --sessions", "/resume"),
    ):
        assert to_slash_commands(text) == expected


def test_a_plain_session_only_grows_and_takes_numbers(chat: Chat, workspace: Path) -> None:
    window = chat(EDIT, DONE, words=("--plain",), ready=False)
    window.sees("Your message (/help lists commands, Ctrl-D leaves):")
    window.press("change it\n")
    window.sees("3 or n: deny it and say why")
    window.answers(b"1", "ok edit  a.txt")
    window.sees("Done, ")
    window.press("/rewind\n")
    window.sees("  1  change it")
    window.press("1\n")
    window.sees("  2  files         undo 1 change")
    window.press("2\n")
    window.sees("ok undo")
    assert (workspace / "a.txt").read_text() == "one\n"
    window.press(b"\x04")
    assert window.program.ends() == 0
    assert "\x1b" not in window.raw


@DEEP
def test_a_terminal_without_control_sequences_gets_the_plain_form(chat: Chat) -> None:
    window = chat(DONE, ready=False, TERM="dumb")
    window.sees("Your message")
    window.press(b"\x04")
    assert window.program.ends() == 0
    assert "\x1b" not in window.raw


def test_without_a_model_it_says_how_to_choose_one(chat: Chat) -> None:
    window = chat(has_model=False, ready=False)
    assert window.program.ends() == 2
    assert "handrail chat --model anthropic:MODEL" in window.text


def test_it_needs_a_terminal(workspace: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "handrail", "chat"]
    done = subprocess.run(
        command, cwd=workspace, env=environment, capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 2
    assert b"a session needs a terminal" in done.stderr
    assert b"next: handrail run 'PROMPT'\n" in done.stderr
    assert not os.listdir(workspace)


def test_nothing_else_imports_the_composers_library(workspace: Path, environment: dict[str, str]) -> None:
    program = (
        "import sys\nfrom handrail.cli.main import run\n"
        "run(['call', 'read', '{\"path\": \"a.txt\"}'])\nrun(['chat', '--help'])\n"
        "assert run(['run', 'go on', '--model', 'scripted:script.json']) == 0\n"
        "sys.exit('prompt_toolkit' in sys.modules)"
    )
    (workspace / "a.txt").write_text("one\n")
    (workspace / "script.json").write_text(json.dumps([EDIT, DONE]))
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=workspace, env=environment, check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr


def test_the_composer_loads_nothing_that_only_the_session_needs(workspace: Path, environment: dict[str, str]) -> None:
    program = (
        "import sys\nfrom handrail.cli.parser import load_command, parse_plain\n"
        "assert parse_plain(load_command('chat'), ['--model', 'scripted:x'])\n"
        "import handrail.chat.first_rows, handrail.terminal.glyphs\n"
        "assert not {'asyncio', 'prompt_toolkit'} & {*sys.modules}, 'before the first rows'\n"
        "import handrail.chat.chat, handrail.terminal.call_lines\n"
        "late = {'argparse', 'difflib', 'sqlite3', 'handrail.settings', 'handrail.api', 'handrail.agent'}\n"
        "sys.exit(', '.join(sorted(late & {*sys.modules})) or None)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=workspace, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_terminal_that_takes_notifications_gets_one_with_text_instead_of_a_bell(chat: Chat) -> None:
    window = chat(EDIT, DONE, TERM_PROGRAM="WezTerm", NO_COLOR="1")
    window.press("\x1b[O")
    window.sends("begin")
    window.sees("Permission · edit")
    assert window.raw.count("\x1b]9;handrail: approval needed\x07") == 1
    assert window.raw.count("\x07") == 1
    assert not re.search(r"\x1b\[[0-9;]*3\dm", window.raw)


def test_a_program_in_the_workspace_never_reads_the_clipboard(
    chat: Chat, workspace: Path, environment: dict[str, str]
) -> None:
    paste = workspace / "wl-paste"
    paste.write_text(f"#!/bin/sh\ntouch '{workspace}/ran'\n")
    paste.chmod(0o700)
    window = chat(DONE, PATH=f"{workspace}:{environment['PATH']}")
    window.press("\x16")
    window.sees("no picture in the clipboard")
    assert not (workspace / "ran").exists()


@DEEP
def test_a_prompt_rings_if_the_window_has_no_focus(chat: Chat) -> None:
    window = chat(EDIT, DONE)
    window.press("\x1b[O")
    window.press("begin")
    window.sees("› begin")
    window.press("\r")
    window.sees("Permission · edit")
    assert window.raw.count("\x07") == 1
    window.answers(b"n", "Why not?")
    window.press("\r")
    window.sees("All is done.")
    assert window.raw.count("\x07") == 1
