"""Commands that were tried, from the shell: looked at, kept, taken for their output only, tried again."""

from pathlib import Path

import pytest

COMMAND = '{"command": "sed -i s/one/two/ a.txt; rm old.txt; touch made; echo printed"}'


@pytest.fixture
def run(here):
    return here


@pytest.fixture(autouse=True)
def files(workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    (workspace / "old.txt").write_text("old\n")


def asked(run) -> str:
    """The short id of a request about a command that was tried."""
    assert run("call", "exec", COMMAND).code == 3
    return waiting(run)["short"]


def waiting(run) -> dict:
    [one] = run("approvals", "--json").json["waiting"]
    return one


def test_a_call_that_asks_prints_what_it_would_change_and_how_to_answer(run, workspace: Path) -> None:
    done = run("call", "exec", COMMAND, "-q")
    assert done.code == 3
    lines = done.out.splitlines()
    assert [line for line in lines if line.startswith("Ran in a disposable copy: exit 0 in ")]
    assert [line for line in lines if line.endswith(" Your files are untouched. Preview from just now.")]
    assert lines[-1] == "Keep these 3 changes with 1 deletion?"
    assert lines[-6:-2] == ["Would change 3 files:", "  D old.txt  −1  deletes!", "  M a.txt  +1 −1", "  A made"]
    assert lines[-2] == 'Printed 1 line, last: "printed"'
    short = waiting(run)["short"]
    untouched, how, more = done.err.splitlines()
    assert untouched == "Your files are untouched. To let it run without being asked, add --mode auto."
    assert how == f"To answer it: handrail approvals allow {short}, or: handrail approvals deny {short} --reason TEXT"
    assert f"handrail approvals allow {short} --output-only" in more
    assert f"handrail approvals retry {short} [--command TEXT]" in more
    assert (workspace / "a.txt").read_text() == "one\n"


def test_a_yes_keeps_exactly_what_was_tried_and_prints_it_with_its_undo(run, workspace: Path) -> None:
    done = run("approvals", "allow", asked(run))
    assert (done.code, done.out.splitlines()[0]) == (0, "printed")
    assert (done.out.count("undo 1\n"), done.err) == (1, "")
    assert ((workspace / "a.txt").read_text(), (workspace / "old.txt").exists()) == ("two\n", False)
    assert run("undo", "1").code == 0
    assert ((workspace / "a.txt").read_text(), (workspace / "old.txt").read_text()) == ("one\n", "old\n")
    assert not (workspace / "made").exists()


def test_output_only_keeps_no_change(run, workspace: Path) -> None:
    done = run("approvals", "allow", asked(run), "--output-only")
    assert (done.code, done.out.splitlines()[0]) == (0, "printed")
    assert ((workspace / "a.txt").read_text(), (workspace / "made").exists()) == ("one\n", False)
    assert run("log", "--changes", "--json").json["changes"] == []


def test_a_request_can_be_looked_at_with_its_difference_and_its_output(run) -> None:
    short = asked(run)
    shown = run("approvals", "show", short)
    assert (shown.code, "-one\n" in shown.out) == (0, False)
    whole = run("approvals", "show", short, "--diff", "--output").out
    assert "\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n" in whole
    assert whole.endswith("\nprinted\n")
    assert waiting(run)["state"] == "waiting"


def test_as_json_a_request_has_its_preview(run) -> None:
    short = asked(run)
    [row] = run("approvals", "show", short, "--json").json["waiting"]
    tried = row["request"]["preview"]["tried"]
    assert (tried["files"], tried["deleted"], tried["exitCode"], tried["lastLine"]) == (3, 1, 0, "printed")
    assert tried["changes"][0]["path"] == "old.txt"
    called = run("call", "exec", COMMAND, "--json").json
    assert called["error"]["details"]["preview"]["tried"]["files"] == 3


def test_the_list_says_how_much_it_would_change(run) -> None:
    asked(run)
    assert ": 3 files, 1 deletion (" in run("approvals").out


def test_a_trial_can_be_made_again_as_it_is_or_as_another_command(run, workspace: Path) -> None:
    short = asked(run)
    (workspace / "a.txt").write_text("one and one\n")
    again = run("approvals", "retry", short)
    assert (again.code, "Would change 3 files:" in again.out) == (3, True)
    other = run("approvals", "retry", short, "--command", "touch other")
    assert (other.code, "  A other\n" in other.out) == (3, True)
    assert "! You edited this command. The result tells the model so." in other.out
    done = run("approvals", "allow", short)
    assert (done.code, (workspace / "other").exists(), (workspace / "made").exists()) == (0, True, False)


def test_what_policy_refuses_is_not_tried_and_the_request_stays(run) -> None:
    short = asked(run)
    done = run("approvals", "retry", short, "--command", "cat .env > stolen")
    assert (done.code, done.err.startswith("error: no new preview: ")) == (1, True)
    assert "The request is unchanged.\nnext: handrail approvals show " in done.err
    assert waiting(run)["request"]["command"].startswith("sed -i")


def test_only_commands_are_tried_again(run) -> None:
    run("call", "write", '{"path": "b.txt", "content": "x"}')
    done = run("approvals", "retry", waiting(run)["short"])
    assert (done.code, done.err) == (
        1,
        "error: only a command has a preview, and this is write. Nothing was run.\n"
        "next: handrail help approvals retry\n",
    )


def test_output_only_and_a_scope_are_two_answers(run) -> None:
    done = run("approvals", "allow", "8f2", "--output-only", "--scope", "session")
    assert (done.code, "not allowed with argument" in done.err) == (2, True)


def test_a_command_without_undo_says_so_at_its_end(run) -> None:
    done = run("call", "exec", '{"command": "echo x | tee made"}', "--mode", "auto")
    assert (done.code, "not covered by undo" in done.err) == (0, False)
    assert "to undo: handrail undo 1\n" in done.err


def test_a_no_to_what_was_tried_says_that_it_was_dropped_and_that_the_files_are_untouched(run) -> None:
    done = run("approvals", "deny", asked(run), "--reason", "not now")
    assert (done.code, done.out.startswith("dropped: Run sed -i")) == (0, True)
    assert done.out.endswith("; your files are untouched\n")


def test_a_yes_to_what_is_out_of_date_is_not_taken_and_the_next_step_works(run, workspace: Path) -> None:
    short = asked(run)
    (workspace / "a.txt").write_text("one and one\n")
    shown = run("approvals", "show", short)
    assert f"allow {short}," not in shown.err
    assert shown.err.startswith(f"To try it again: handrail approvals retry {short} [--command TEXT], or: ")
    done = run("approvals", "allow", short)
    step = f"handrail approvals retry {short}"
    told = "error: Out of date: a.txt changed since. Nothing was kept."
    assert (done.code, done.err) == (1, f"{told}\nnext: {step}\n")
    assert run("approvals", "retry", short).code == 3
    assert run("approvals", "allow", short).code == 0
    assert (workspace / "a.txt").read_text() == "two and one\n"


def test_the_output_of_what_is_out_of_date_can_be_had(run, workspace: Path) -> None:
    short = asked(run)
    (workspace / "a.txt").write_text("one and one\n")
    done = run("approvals", "allow", short, "--output-only")
    assert (done.code, done.out.splitlines()[0]) == (0, "printed")


def test_a_yes_to_what_was_stopped_says_what_can_be_had_instead(run) -> None:
    assert run("call", "exec", '{"command": "touch half; echo begun; sleep 60", "timeoutMs": 500}').code == 3
    short = waiting(run)["short"]
    done = run("approvals", "allow", short)
    told = "error: the command was stopped early. Nothing was kept."
    assert (done.code, done.err) == (2, f"{told}\nnext: handrail approvals allow {short} --output-only\n")
    assert run("approvals", "allow", short, "--output-only").code == 5


def test_what_was_not_tried_is_not_offered_to_be_tried_again(run) -> None:
    done = run("call", "exec", '{"command": "sh", "background": true}')
    short = waiting(run)["short"]
    step = f"Or to try it, or another command instead: handrail approvals retry {short} [--command TEXT]"
    assert (done.code, done.err.splitlines()[-1]) == (3, step)
