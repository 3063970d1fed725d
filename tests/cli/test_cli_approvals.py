"""handrail approvals: what waits and what is granted; an answer from another process is to the same question."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Handrail, Parked, ToolCall, tool
from handrail.protocol.records import list_matching_ids, shorten_ids
from handrail.settings import Settings
from handrail.settings.model import Paths
from handrail.store.state_dir import make_id

WRITE = '{"path": "new.txt", "content": "one\\n"}'
TOUCH = '{"command": "touch made"}'
Library = Callable[..., Handrail]


@pytest.fixture
def run(here):
    """In this process: these are many commands."""
    return here


@pytest.fixture
def library(state: Path, workspace: Path) -> Iterator[Library]:
    """Opens Handrails over the workspace, with the state folder of the commands."""
    opened: list[Handrail] = []

    def make(session: str = "library", **options) -> Handrail:
        chosen = {"mode": "ask", "settings": Settings(), "on_permission": lambda _: None, **options}
        opened.append(Handrail(workspace, session=session, state_dir=state, **chosen))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def write(call_id: str, path: str) -> ToolCall:
    return call(call_id, "write", path=path, content="x\n")


def call(call_id: str, name: str, **args: str) -> ToolCall:
    return ToolCall(tool_call_id=call_id, name=name, args=args, trace_id=call_id, timestamp=datetime.now(UTC))


def waits(run, *words: str) -> list[dict]:
    return run("approvals", "--json", *words).json["waiting"]


def grants(run) -> list[dict]:
    return run("approvals", "--json").json["granted"]


def test_nothing_waits_at_first(run, state: Path) -> None:
    done = run("approvals", "--workspace", ".")
    assert (done.code, done.out, done.err) == (
        0,
        "",
        "no request waits here, and nothing is granted; every workspace: --all\n",
    )
    nothing = {"waiting": [], "questions": [], "granted": []}
    assert run("approvals", "--json").json == {"schema": "handrail.approvals/1", **nothing}
    assert not state.exists()


def test_what_waits_is_listed_with_a_short_id_over_all_sessions(run, library: Library) -> None:
    assert run("call", "write", WRITE).code == 3
    assert run("call", "exec", TOUCH, "--session", "other").code == 3
    done = run("approvals", "--workspace", ".")
    head, first, second = done.out.splitlines()
    assert head.split() == ["id", "state", "since", "session", "what"]
    one, two = waits(run)
    assert first.startswith(f"{one['short']}  waiting  ")
    assert first.endswith("  cli      Write new.txt (fs.write)")
    assert second.endswith("  other    exec touch made: 1 file (fs.write)")
    assert done.err == f"to answer: handrail approvals allow {one['short']} | deny {one['short']} --reason TEXT\n"
    assert (two["sessionId"], two["mode"], two["state"], two["request"]["command"]) == (
        "other", "ask", "waiting", "touch made",
    )  # fmt: skip


def test_looking_disturbs_nobody(run, library: Library, state: Path) -> None:
    rail = library()
    assert isinstance(rail.batch([write("a", "a.txt")]), Parked)

    def seen() -> tuple[int, list[str]]:
        return len(list(rail.events())), sorted(path.name for path in state.rglob("*") if path.suffix != ".db-shm")

    before = seen()
    assert len(waits(run)) == 1
    assert seen() == before


def test_allow_runs_it_and_prints_one_line_about_the_result(run, workspace: Path) -> None:
    run("call", "write", WRITE)
    [waiting] = waits(run)
    done = run("approvals", "allow", waiting["short"])
    assert (done.code, done.out, done.err) == (0, "✓ You allowed Write new.txt · undo 1\n", "")
    assert (workspace / "new.txt").read_text() == "one\n"
    assert waits(run) == []


def test_allow_as_json_has_the_results(run) -> None:
    run("call", "exec", TOUCH)
    done = run("approvals", "allow", waits(run)[0]["id"], "--json")
    assert (done.code, done.err, done.json["schema"]) == (0, "", "handrail.approvals/1")
    assert [result["ok"] for result in done.json["results"]] == [True]


def test_a_trial_is_not_kept_over_a_file_that_changed_since(run, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    run("call", "exec", '{"command": "sort -o a.txt a.txt; echo two >> a.txt"}')
    (workspace / "a.txt").write_text("somebody else\n")
    short = waits(run)[0]["short"]
    shown = run("approvals", "show", short).out
    assert f"Out of date: a.txt changed since. handrail approvals retry {short} tries it again." in shown
    done = run("approvals", "allow", short)
    assert (done.code, "Nothing was kept." in done.err) == (1, True)
    assert (workspace / "a.txt").read_text() == "somebody else\n"


def test_the_exit_code_is_that_of_the_call(run, workspace: Path) -> None:
    run("call", "write", WRITE)
    (workspace / "new.txt").write_text("somebody else\n")
    done = run("approvals", "allow", waits(run)[0]["id"])
    assert (done.code, done.err.splitlines()[-1]) == (1, "next: handrail log --changes")
    run("call", "exec", '{"command": "tail -f /dev/null; touch a", "timeoutMs": 100}')
    assert run("approvals", "allow", waits(run)[0]["id"], "--output-only").code == 5


def test_deny_says_why_to_the_model_and_is_no_failure(run, library: Library, workspace: Path) -> None:
    rail = library()
    rail.batch([write("a", "a.txt")])
    done = run("approvals", "deny", waits(run)[0]["short"], "--reason", "use the staging config")
    assert (done.code, done.out) == (0, "denied: Write a.txt; nothing was run\n")
    result = rail.call("write", {"path": "a.txt", "content": "x\n"}, tool_call_id="a")
    assert result.error is not None
    assert '"use the staging config"' in result.error.message
    assert not (workspace / "a.txt").exists()


def test_of_a_batch_nothing_runs_before_its_last_answer(run, library: Library, workspace: Path) -> None:
    library().batch([write("a", "a.txt"), write("b", "b.txt")])
    first, second = waits(run)
    done = run("approvals", "allow", first["id"])
    words, short = done.err.rstrip("\n").rsplit(" ", 1)
    assert (done.code, done.out) == (3, "")
    assert words == "Answered. 1 more to answer in this batch: handrail approvals allow"
    assert second["short"].startswith(short)  # alone, it may be shorter than beside the first
    assert not (workspace / "a.txt").exists()
    done = run("approvals", "deny", second["id"])
    assert (done.code, done.out.splitlines()[0]) == (0, "Created a.txt +1 −0.")
    assert ((workspace / "a.txt").exists(), (workspace / "b.txt").exists()) == (True, False)


def test_a_grant_is_listed_and_revoked_at_once(run, state: Path) -> None:
    run("call", "exec", TOUCH)
    done = run("approvals", "allow", waits(run)[0]["id"], "--scope", "workspace")
    told = (
        "no longer asks for `touch` in this workspace; handrail approvals lists it, handrail approvals revoke ends it\n"
    )
    assert (done.code, done.err) == (0, told)
    [grant] = grants(run)
    assert (grant["kind"], grant["command"], grant["scope"]) == ("command", "touch", "workspace")
    assert run("call", "exec", '{"command": "touch again"}', "--session", "another").code == 0
    assert f"{grant['short']}  granted, workspace  " in run("approvals").out
    remove_place(state)  # which workspace it is need not be noted
    done = run("approvals", "revoke", grant["short"])
    assert (done.code, done.out) == (0, "revoked: touch asks again\n")
    assert grants(run) == []
    assert run("call", "exec", '{"command": "touch third"}').code == 3
    assert run("approvals", "revoke", grant["short"]).code == 1


def test_plain_edits_are_granted_listed_and_revoked(run, workspace: Path) -> None:
    assert run("call", "write", WRITE).out.endswith("\nWrite new.txt?\n")
    done = run("approvals", "allow", waits(run)[0]["id"], "--scope", "edits")
    told = "no longer asks for plain edits in this session; handrail approvals lists it, "
    told += "handrail approvals revoke ends it\n"
    assert (done.code, done.err) == (0, told)
    [grant] = grants(run)
    assert (grant["kind"], grant["command"], grant["scope"]) == ("edits", "plain edits", "session")
    assert run("approvals").out.splitlines()[-1].endswith("  plain edits")
    done = run("call", "exec", '{"command": "echo two > new.txt"}')
    assert (done.code, (workspace / "new.txt").read_text()) == (0, "two\n")
    assert "not asked: plain edits are allowed in this session\n" in done.err
    assert run("call", "exec", '{"command": "rm new.txt"}').code == 3, "a deletion asks"
    assert run("call", "write", WRITE, "--session", "another").code == 3
    done = run("approvals", "revoke", grant["short"])
    assert (done.code, done.out) == (0, "revoked: plain edits ask again\n")
    assert run("call", "exec", '{"command": "echo six > new.txt"}').code == 3


def test_an_opened_folder_is_listed_and_closed_by_its_path(run, config, tmp_path: Path) -> None:
    config('[paths]\noutside = "ask"\n')
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("hello\n")
    read = json.dumps({"path": str(outside / "a.txt")})
    assert run("call", "read", read).code == 3
    [waiting] = waits(run)
    assert run("approvals", "allow", waiting["id"], "--scope", "session").out == "hello\n"
    [opened] = grants(run)
    assert (opened["kind"], opened["path"], opened["access"], opened["scope"]) == (
        "folder", str(outside), "read", "session",
    )  # fmt: skip
    assert run("call", "read", read).code == 0
    assert run("approvals", "revoke", str(outside)).code == 0
    assert grants(run) == []
    assert run("call", "read", read).code == 3


def test_an_answer_that_is_not_offered_is_refused_and_it_still_waits(run) -> None:
    run("call", "write", WRITE)
    done = run("approvals", "allow", waits(run)[0]["id"], "--scope", "session")
    assert (done.code, done.out) == (2, "")
    assert "this request can be answered with once or edits or deny, not with 'session'. Nothing was run." in done.err
    assert len(waits(run)) == 1


def test_an_id_that_is_wrong_short_or_used_is_one_clear_line(run, library: Library) -> None:
    calls = [write(f"c{number}", f"{number}.txt") for number in range(17)]
    library().batch(calls)
    own = [one["request"]["id"][-16:] for one in waits(run)]
    twice = next(one[0] for one in own if sum(other.startswith(one[0]) for other in own) > 1)
    for words, code, message in (
        (("allow", "zzz"), 1, "there is no request 'zzz'. Nothing was run.\nnext: handrail approvals\n"),
        (("deny", "ask_"), 1, "there is no request 'ask_'."),
        (("revoke", "zzz"), 1, "there is no grant 'zzz'. Nothing was revoked."),
        (("allow", twice), 2, f"'{twice}' could be "),
        (("allow", ""), 2, "argument ID: must not be empty."),
    ):
        done = run("approvals", *words)
        assert (done.code, done.out) == (code, "")
        assert done.err.startswith(f"error: {message}")
        assert [line.split()[0] for line in done.err.splitlines()] == ["error:", "next:"]
    assert len(waits(run)) == 17


def test_an_id_is_found_from_another_folder_and_all_lists_every_workspace(run, tmp_path: Path, workspace: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    run("call", "write", WRITE)
    assert waits(run, "--workspace", str(other)) == []
    [waiting] = waits(run, "--workspace", str(other), "--all")
    assert waiting["workspace"] == str(workspace)
    assert str(workspace) in run("approvals", "--all").out
    assert run("approvals", "allow", waiting["short"], cwd=other).code == 0
    assert (workspace / "new.txt").exists()


DIES = """
import os, signal, sys
from handrail import Handrail
from handrail.settings import Settings
rail = Handrail(sys.argv[1], mode=sys.argv[3], session="killed", state_dir=sys.argv[2], settings=Settings(),
                on_permission=lambda _: None)
def die(frame, event, _):
    if event == "return" and frame.f_code.co_name == sys.argv[4] and frame.f_code.co_filename.endswith("approvals.py"):
        os.kill(os.getpid(), signal.SIGKILL)
sys.setprofile(die)
rail.call("exec", {"command": sys.argv[5]})
"""


@pytest.mark.parametrize(
    ("mode", "place", "command"),
    [("ask", "save_parked", "touch made"), ("auto", "save_parked", "bash gen.sh")],
)
def test_a_request_can_be_answered_though_its_process_was_killed_as_soon_as_it_waited(
    run, environment, state: Path, workspace: Path, tmp_path: Path, mode: str, place: str, command: str
) -> None:
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / "gen.sh").write_text("touch made .git/hooks/pre-commit\n")
    script = [sys.executable, "-c", DIES, workspace, state, mode, place, command]
    done = subprocess.run(script, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == -signal.SIGKILL, done.stderr
    [waiting] = waits(run, "--all")
    assert waiting["workspace"] == str(workspace)
    assert run("approvals", "allow", waiting["id"], cwd=tmp_path).code == 0
    assert (workspace / "made").exists()


def remove_place(state: Path) -> None:
    """As a crash of an older version left it."""
    [place] = state.glob("workspaces/*/.place")
    place.unlink()


@pytest.mark.parametrize(
    ("answer", "code", "named"),
    [("allow", 0, False), ("allow", 0, True), ("deny", 0, True), ("show", 0, False), ("retry", 3, True)],
)
def test_a_request_whose_workspace_was_not_noted_is_found_by_the_workspace(
    run, state: Path, workspace: Path, tmp_path: Path, answer: str, code: int, named: bool
) -> None:
    run("call", "exec", TOUCH)
    remove_place(state)
    [waiting] = waits(run)
    assert waiting["workspace"] == str(workspace)
    words, cwd = (["--workspace", str(workspace)], tmp_path) if named else ([], workspace)
    done = run("approvals", answer, waiting["short"], *words, cwd=cwd)
    assert done.code == code, done.err
    assert (workspace / "made").exists() is (answer == "allow")


def test_elsewhere_a_request_whose_workspace_was_not_noted_says_what_to_name(run, state: Path, tmp_path: Path) -> None:
    run("call", "exec", TOUCH)
    remove_place(state)
    [waiting] = waits(run)
    done = run("approvals", "allow", waiting["id"], cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "Name it with --workspace." in done.err


def test_an_answer_is_carried_out_in_the_mode_that_the_call_was_judged_in(
    run, library: Library, workspace: Path
) -> None:
    """The first of the two runs unasked in auto; in the mode of the settings, ask, nobody would have been asked."""
    assert isinstance(library(mode="auto").batch([write("a", "a.txt"), write("b", ".gitmodules")]), Parked)
    [waiting] = waits(run)
    assert (waiting["mode"], waiting["request"]["paths"]) == ("auto", [".gitmodules"])
    assert run("approvals", "allow", waiting["id"]).code == 0
    assert (workspace / "a.txt").exists()


def test_a_looser_mode_of_today_loosens_nothing(run, config, library: Library, tmp_path: Path, workspace: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("hello\n")
    rail = library(mode="plan", settings=Settings(paths=Paths(outside="ask")))
    assert isinstance(rail.batch([write("w", "a.txt"), call("r", "read", path=str(outside / "a.txt"))]), Parked)
    config('mode = "full"\n[paths]\noutside = "ask"\n')
    [waiting] = waits(run)
    assert waiting["mode"] == "plan"
    done = run("approvals", "allow", waiting["id"])
    assert (done.code, done.out) == (1, "hello\n")
    assert "is denied by rule fs.write: plan mode" in done.err
    assert not (workspace / "a.txt").exists()


def test_a_journal_that_cannot_be_read_hides_no_other(run, library: Library, state: Path) -> None:
    library("broken").close()
    [journal] = state.rglob("broken/journal.db")
    journal.write_bytes(b"no database at all" * 100)
    run("call", "write", WRITE)
    done = run("approvals", "-q")
    assert (done.code, done.out.count("Write new.txt")) == (0, 1)
    assert done.err.startswith(f"warning: the journal {journal} cannot be read: ")
    assert run("approvals", "allow", waits(run)[0]["short"]).code == 0


def test_a_tool_that_only_the_program_has_is_not_answered_from_the_shell(run, library: Library) -> None:
    @tool
    def deploy() -> str:
        """Deploys it."""
        return "deployed"

    rail = library(tools=[deploy])
    assert isinstance(rail.batch([call("a", "deploy")]), Parked)
    [waiting] = waits(run)
    done = run("approvals", "allow", waiting["id"])
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(
        "error: only the program that made the request has the tool 'deploy'. Nothing was answered."
    )
    outcome = rail.answer(waiting["id"], "once")
    assert outcome.results[0].content == "deployed"


def test_a_tool_that_only_the_program_has_can_be_refused_from_the_shell_where_no_other_call_needs_it(
    run, library: Library
) -> None:
    @tool
    def deploy() -> str:
        """Deploys it."""
        return "deployed"

    rail = library(tools=[deploy])
    rail.batch([call("a", "deploy")])
    assert run("approvals", "deny", waits(run)[0]["id"], "--reason", "no").out.startswith("denied: Deploy")
    assert rail.call("deploy", {}, tool_call_id="a").error.code == "PERMISSION_DENIED"
    rail.batch([call("b", "deploy"), call("c", "deploy")])
    assert run("approvals", "deny", waits(run)[0]["id"]).code == 1
    assert len(waits(run)) == 2


def test_a_request_about_a_folder_that_is_gone_still_waits_and_says_what_then(run, workspace: Path) -> None:
    run("call", "write", WRITE)
    [waiting] = waits(run)
    workspace.rename(workspace.with_name("moved"))
    for word in ("allow", "deny"):
        done = run("approvals", word, waiting["id"], cwd=workspace.parent)
        assert (done.code, done.out) == (1, "")
        assert "of the request does not exist. Nothing was answered." in done.err
    workspace.with_name("moved").rename(workspace)
    assert run("approvals", "allow", waiting["id"]).code == 0


def test_a_broken_journal_of_another_session_keeps_nobody_from_answering(run, state: Path) -> None:
    run("call", "write", WRITE)
    broken = state / "workspaces" / "0123456789abcdef" / "s" / "journal.db"
    broken.parent.mkdir(parents=True)
    broken.write_text("no database, and long enough to tell that it is none")
    done = run("approvals", "--all", "--json")
    assert (done.code, done.err.count(f"the journal {broken} cannot be read")) == (0, 1)
    [waiting] = done.json["waiting"]
    assert run("approvals", "allow", waiting["id"]).code == 0
    assert run("approvals", "allow", waiting["id"]).err.count("already has an answer: once.") == 1


def test_a_yes_that_would_not_count_here_is_not_given(run, state: Path, workspace: Path, tmp_path: Path) -> None:
    """The folder of programs that it was to have is gone, and what was kept of it does not bring it back."""
    programs = folder_of_programs(tmp_path / "bin", "greet", "hello")
    path = f"{programs}:{os.environ['PATH']}"
    run("call", "exec", TOUCH, PATH=path)
    [waiting] = waits(run)
    programs.rename(tmp_path / "elsewhere")
    done = run("approvals", "allow", waiting["id"], PATH=path)
    assert (done.code, done.out) == (1, "")
    assert "the command would now get other variables (PATH, language, toolchains). Nothing was approved." in done.err
    (tmp_path / "elsewhere").rename(programs)
    assert run("approvals", "allow", waiting["id"], PATH=path).code == 0
    assert (workspace / "made").exists()


def test_a_command_answered_from_another_shell_runs_as_it_would_have_where_it_was_asked(
    apart, state: Path, workspace: Path
) -> None:
    """Real processes: one asks, and one with another PATH, language and listed variables answers."""
    there, here = (folder_of_programs(workspace / name, "greet", name) for name in ("there", "here"))
    asked = {"PATH": f"{there}:{os.environ['PATH']}", "LANG": "de_DE.UTF-8", "GOPATH": str(there), "SECRET": "x"}
    assert apart("call", "exec", '{"command": "greet; echo $LANG $GOPATH $TZ; touch made"}', **asked).code == 3
    [kept] = state.glob("workspaces/*/cli/environments/*")
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert "SECRET" not in kept.read_text()
    [waiting] = waits(apart)
    answering = {"PATH": f"{here}:{os.environ['PATH']}", "LANG": "C.UTF-8", "GOPATH": str(here), "TZ": "Asia/Tokyo"}
    done = apart("approvals", "allow", waiting["short"], **answering)
    assert (done.code, done.out.split()[:3]) == (0, ["there", "de_DE.UTF-8", str(there)])


def test_variables_that_were_tampered_with_are_not_taken(run, state: Path) -> None:
    run("call", "exec", TOUCH, LANG="de_DE.UTF-8")
    [kept] = state.glob("workspaces/*/cli/environments/*")
    kept.write_text(kept.read_text().replace("de_DE", "fr_FR"))
    done = run("approvals", "allow", waits(run)[0]["id"])
    assert (done.code, done.err.count("Nothing was approved.")) == (1, 1)
    assert run("approvals", "deny", waits(run)[0]["id"]).code == 0


def test_the_last_answer_of_a_batch_runs_its_commands_with_their_variables_whatever_it_is_to(
    run, library: Library, workspace: Path
) -> None:
    assert isinstance(library().batch([call("e", "exec", command="touch made"), write("w", "a.txt")]), Parked)
    for one in waits(run):
        assert run("approvals", "allow", one["id"], LANG="de_DE.UTF-8").code in {0, 3}
    assert ((workspace / "made").exists(), (workspace / "a.txt").exists()) == (True, True)


def folder_of_programs(folder: Path, name: str, says: str) -> Path:
    """A folder with one program in it."""
    folder.mkdir()
    program = folder / name
    program.write_text(f"#!/bin/sh\necho {says}\n")
    program.chmod(0o755)
    return folder


KILLED = """
import os, signal, sys
from datetime import UTC, datetime
from handrail import Handrail, ToolCall, tool
from handrail.settings import Settings
from handrail.settings.model import Paths

@tool(permissions=(), auto_execute=True)
def die() -> str:
    "Ends the process."
    os.kill(os.getpid(), signal.SIGKILL)
    return ""

def call(id, name, **args):
    return ToolCall(tool_call_id=id, name=name, args=args, trace_id=id, timestamp=datetime.now(UTC))

rail = Handrail(".", mode="ask", session="s", settings=Settings(), tools=[die], on_permission=lambda _: None)
parked = rail.batch([call("d", "die"), call("w", "write", path="a.txt", content="x")])
for request in parked.requests:
    rail.answer(request.id, "once")
"""


def test_what_was_answered_and_not_run_is_listed_and_run_by_allow(run, environment, workspace: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED], cwd=workspace, env=environment, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    waiting = [one for one in waits(run) if one["request"]["toolName"] == "write"]
    assert [one["state"] for one in waiting] == ["ready"]
    assert "answered, not run" in run("approvals").out
    refused = run("approvals", "deny", waiting[0]["id"])
    assert (refused.code, refused.err.count("already has an answer: once. It has not run yet.")) == (1, 1)
    done = run("approvals", "allow", waiting[0]["id"])
    assert (workspace / "a.txt").exists(), done
    assert waits(run) == []


def test_watch_tells_every_change_on_a_line_until_it_is_interrupted(run, environment, workspace: Path) -> None:
    command = [sys.executable, "-m", "handrail", "approvals", "--watch", "--json"]
    run("call", "write", WRITE)
    with subprocess.Popen(
        command, cwd=workspace, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as watch:
        assert watch.stdout is not None
        first = json.loads(watch.stdout.readline())
        run("approvals", "deny", first["id"])
        second = json.loads(watch.stdout.readline())
        run("call", "exec", TOUCH)
        third = json.loads(watch.stdout.readline())
        watch.send_signal(signal.SIGINT)
        assert watch.wait(60) == 130
    assert [one["change"] for one in (first, second, third)] == ["waiting", "answered", "waiting"]
    assert first["schema"] == "handrail.approvals/1"
    assert (second["id"], third["request"]["command"]) == (first["id"], "touch made")


def test_watch_ends_when_nobody_reads_it(run, environment, workspace: Path) -> None:
    run("call", "write", WRITE)
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "handrail", "approvals", "--watch", "--json"]
    with contextlib.closing(os.fdopen(write, "wb")) as pipe:
        done = subprocess.run(command, cwd=workspace, env=environment, stdout=pipe, check=False, timeout=60)
    assert done.returncode == 0


@given(st.lists(st.builds(make_id, st.just("ask")), min_size=1, max_size=40, unique=True))
def test_a_short_id_means_one(ids: list[str]) -> None:
    for one, short in shorten_ids(ids).items():
        for spelled in (short, one, one.removeprefix("ask_")):
            assert list_matching_ids(spelled, ids) == [one]
        assert len(short) >= 3
    assert list_matching_ids("ask_", ids) == list_matching_ids("", ids) == list_matching_ids(ids[0][:8], ids) == []


def test_a_grant_can_be_chosen_among_those_that_are_offered(run) -> None:
    run("call", "exec", '{"command": "touch a && mkdir b"}')
    [waiting] = waits(run)
    assert waiting["request"]["grants"] == ["touch", "mkdir"]
    done = run("approvals", "allow", waiting["id"], "--scope", "session", "--grant", "touch")
    assert (done.code, "no longer asks for `touch` in this session" in done.err) == (0, True)
    assert [grant["command"] for grant in grants(run)] == ["touch"]


@pytest.mark.parametrize("words", [("--scope", "session", "--grant", "rm"), ("--grant", "touch")])
def test_nothing_is_granted_that_was_not_offered(run, workspace: Path, words: tuple[str, ...]) -> None:
    run("call", "exec", '{"command": "touch a && mkdir b"}')
    done = run("approvals", "allow", waits(run)[0]["id"], *words)
    assert (done.code, "Nothing was run." in done.err) == (2, True)
    assert (grants(run), len(waits(run)), (workspace / "a").exists()) == ([], 1, False)
