"""exec, read, edit, write, grep, find and ls: the tools without JSON."""

import os
from pathlib import Path

import msgspec
import pytest

from handrail.api import load_builtin_spec
from handrail.cli.commands.shortcuts import COMMANDS
from handrail.cli.parser import parse_plain
from handrail.sandbox.bubblewrap import find_bubblewrap

needs_sandbox = pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed")


@pytest.fixture(autouse=True)
def files(workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "a.txt").write_text("one\ntwo\nTwo\n")
    (workspace / "src" / "b.py").write_text("two = 2\n")


def test_read_prints_the_file_or_a_page_of_it(here) -> None:
    assert here("read", "a.txt").out == here("call", "read", '{"path": "a.txt"}').out
    page = here("read", "a.txt", "--offset", "-1", "--limit", "1")
    assert (page.code, "Two" in page.out, "one" in page.out) == (0, True, False)


def test_grep_and_find_and_ls_search_here_or_in_a_folder(here) -> None:
    assert "a.txt" in here("grep", "two").out
    assert "a.txt" not in here("grep", "two", "src").out
    assert "Two" in here("grep", "two", "a.txt", "--no-case-sensitive").out
    assert here("find", "*.py").out == "src/b.py\n"
    assert "b.py" not in here("find", "*", "--exclude", "src", "--exclude", "c").out
    assert "a.txt" in here("ls").out
    assert "b.py" in here("ls", "src").out


def test_edit_and_write_change_a_file_and_can_be_undone(run, workspace: Path) -> None:
    assert run("edit", "a.txt", "one", "1", "--mode", "auto").code == 0
    assert (workspace / "a.txt").read_text() == "1\ntwo\nTwo\n"
    done = run("write", "new/c.txt", "--mode", "auto", stdin="größer\n".encode())
    assert (done.code, "to undo: handrail undo 2" in done.err) == (0, True)
    assert (workspace / "new" / "c.txt").read_text() == "größer\n"
    run("undo", "-q")
    assert not (workspace / "new").exists()


def test_what_needs_permission_waits_as_with_call(run, workspace: Path) -> None:
    done = run("edit", "a.txt", "one", "1")
    assert (done.code, "handrail approvals allow" in done.err) == (3, True)
    assert (workspace / "a.txt").read_text().startswith("one")


def test_text_that_begins_with_a_dash_goes_after_two_dashes(here, workspace: Path) -> None:
    assert here("edit", "--mode", "auto", "a.txt", "--", "one", "-1").code == 0
    assert (workspace / "a.txt").read_text().startswith("-1\n")


MISTAKES = [
    (["read"], "the following arguments are required: FILE.\nnext: handrail help read"),
    (["read", "a.txt", "--limit", "0"], "read: limit must be 1 or more, got 0. Nothing was run."),
    (["read", "a.txt", "--limit", "many"], "read: limit must be an integer, got 'many'. Nothing was run."),
    (
        ["read", "a.txt", "--ofset", "3"],
        "unrecognized arguments: --ofset 3. Did you mean --offset?\nnext: handrail help read",
    ),
    (["grep", ""], "grep: pattern must be at least 1 characters long, got ''. Nothing was run."),
    (
        ["exec", "make"],
        "put -- before the command. Otherwise handrail reads the command's options as its own. Nothing was run.",
    ),
]


@pytest.mark.parametrize(("words", "sentence"), MISTAKES)
def test_a_mistake_is_exit_2_and_runs_nothing(here, state: Path, words: list[str], sentence: str) -> None:
    done = here(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {sentence}")
    assert not state.exists()


def test_content_that_is_no_text_is_not_written(run, workspace: Path) -> None:
    done = run("write", "c.txt", "--mode", "auto", stdin=b"\xff\xfe")
    assert (done.code, "the content is not UTF-8" in done.err) == (2, True)
    assert not (workspace / "c.txt").exists()


@needs_sandbox
@pytest.mark.parametrize("words", [["exec", "--mode", "full", "--"], ["call", "exec", "--mode", "full", "--exit-code"]])
def test_a_command_gives_its_own_exit_code(run, words: list[str]) -> None:
    def execute(command: str):
        return run(*words, command if words[0] == "exec" else f'{{"command": "{command}"}}')

    done = execute("echo out; exit 7")
    assert (done.code, done.out, "[exit code 7" in done.err) == (7, "out\n", True)
    silent = execute("true")
    assert (silent.code, silent.out) == (0, "")


@needs_sandbox
def test_words_after_the_dashes_are_one_command_each_as_it_is(run) -> None:
    done = run("exec", "--cwd", "src", "--", "printf", "%s|", "a b", "--json", "$HOME")
    assert (done.code, done.out) == (0, "a b|--json|$HOME|")


NOT_RUN = [
    (["exec", "--", "touch new"], "handrail approvals allow"),
    (["exec", "--unattended", "--", "touch new"], "needs approval, which was denied"),
    (["exec", "--", "cat .env"], "is denied by rule"),
    (["exec", "--mode", "full", "--timeout-ms", "100", "--", "sleep 5"], "error: stopped after"),
    (["exec", "--timeout-ms", "1", "--", "true"], "timeoutMs must be 100 or more"),
    (["exec", "--workspace", "/nowhere", "--", "true"], "/nowhere"),
    (["exec", "--"], "the command is missing"),
    (["call", "exec", "{}", "--exit-code"], "error: exec: "),
    (["call", "exec", "nothing", "--exit-code"], "not JSON"),
]


@needs_sandbox
@pytest.mark.parametrize(("words", "said"), NOT_RUN)
def test_a_command_that_does_not_come_to_its_end_is_125(run, words: list[str], said: str) -> None:
    done = run(*words)
    assert (done.code, said in done.err) == (125, True)


def test_the_exit_code_of_other_tools_is_no_question(here) -> None:
    done = here("call", "read", '{"path": "a.txt"}', "--exit-code")
    assert (done.code, done.err) == (
        2,
        "error: --exit-code works only with exec. Nothing was run.\nnext: handrail help call\n",
    )


@pytest.mark.parametrize("tool", COMMANDS)
def test_every_argument_of_the_tool_is_in_its_help(here, tool: str) -> None:
    text = here(tool, "--help").out
    for field in msgspec.structs.fields(load_builtin_spec(tool).arguments):
        if (tool, field.name) not in {("exec", "command"), ("write", "content")} and not field.required:
            option = f"--{'no-' if field.default is True else ''}{field.name.replace('_', '-')}"
            assert option in text or "[PATH]" in text


def test_a_plain_read_needs_no_argparse() -> None:
    parsed = parse_plain(COMMANDS["read"], ["a.txt", "--limit", "3"])
    assert parsed is not None
    assert (parsed.path, parsed.limit, parsed.offset) == ("a.txt", "3", None)
