"""What a session offers and lets be while skills are active; that lasts, and ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from handrail import Done, Handrail, ToolCall, tool
from handrail.policy.config import PolicyConfig
from handrail.policy.decide import decide
from handrail.protocol.tool_spec import BASE_NAMES
from handrail.settings import Settings
from handrail.settings.model import Tools
from handrail.state import list_past_calls

Make = Callable[..., Handrail]
Put = Callable[..., Path]
OWN = ("skill_list", "skill_control")


def activate(rail: Handrail, name: str, action: str = "activate") -> Any:
    result = rail.call("skill_control", {"name": name, "action": action})
    assert result.ok, result.error
    return result


def names(rail: Handrail) -> set[str]:
    """The offered names, the same in every list there is."""
    listed = [spec.name for spec in rail.specs()]
    assert [entry["function"]["name"] for entry in rail.openai_tools()] == listed
    assert [entry["name"] for entry in rail.anthropic_tools()] == listed
    return set(listed)


def refusal(rail: Handrail, name: str, **args: Any) -> tuple[str, Any]:
    error = rail.call(name, args).error
    return (
        ("", None)
        if error is None
        else (error.code, (error.details or {}).get("rule") if isinstance(error.details, dict) else None)
    )


@pytest.fixture
def project(workspace: Path, put: Put) -> Path:
    for name in ("commit", "review", "release-notes", "house-style"):
        put(workspace / ".claude/skills", name)
    (workspace / "docs").mkdir()
    (workspace / "docs/a.md").write_text("docs\n")
    (workspace / "a.py").write_text("code\n")
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    return workspace


def test_only_what_the_skill_names_is_offered_and_the_rest_is_unknown(skilled: Make, project: Path) -> None:
    rail = skilled()
    assert names(rail) == {*BASE_NAMES, *OWN}
    activate(rail, "review")
    assert names(rail) == {"read", "grep", "find", "ls", *OWN}
    result = rail.call("write", {"path": "b.py", "content": ""})
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("UNKNOWN_TOOL", "Unknown Agent tool: write")
    assert set(result.error.details) == names(rail)
    assert rail.why_off("write") == "write is off: no active skill allows it."
    activate(rail, "review", "deactivate")
    assert names(rail) == {*BASE_NAMES, *OWN}


def test_a_command_outside_its_patterns_is_refused_and_one_inside_runs(skilled: Make, project: Path) -> None:
    rail = skilled()
    activate(rail, "commit")
    assert names(rail) == {"exec", "process", *OWN}
    assert refusal(rail, "exec", command="git status") == ("", None)
    for command in ("rm a.py", "git status && rm a.py", "git push", "env git status", "git status $X"):
        assert refusal(rail, "exec", command=command) == ("POLICY_DENIED", "skill.commit")
    assert (project / "a.py").exists()


def test_a_refusal_says_what_the_skill_is_for(skilled: Make, project: Path) -> None:
    rail = skilled()
    activate(rail, "commit")
    error = rail.call("exec", {"command": "rm a.py"}).error
    assert error is not None
    assert error.message == (
        "Rule skill.commit forbids exec rm a.py: the active skill commit is for git add:*, git status:*, git diff:*, "
        "git commit:* only. Nothing ran. Use the allowed tools, or deactivate the skill when its task is done."
    )


def test_paths_are_held_to_as_well_and_its_own_files_can_be_read(skilled: Make, project: Path) -> None:
    rail = skilled()
    activate(rail, "release-notes")
    assert names(rail) == {"read", "write", "exec", "process", *OWN}
    assert refusal(rail, "read", path="docs/a.md") == ("", None)
    assert refusal(rail, "read", path=".claude/skills/release-notes/references/form.md") == ("", None)
    assert refusal(rail, "read", path="a.py") == ("POLICY_DENIED", "skill.release-notes")
    assert refusal(rail, "write", path="docs/releases/1.md", content="x\n") == ("", None)
    assert refusal(rail, "write", path="docs/a.md", content="x\n") == ("POLICY_DENIED", "skill.release-notes")
    (project / "docs/link.md").symlink_to("../a.py")
    assert refusal(rail, "read", path="docs/link.md") == ("POLICY_DENIED", "skill.release-notes")


def test_a_skill_with_files_keeps_read_for_them_alone(skilled: Make, project: Path) -> None:
    (project / ".claude/skills/commit/style.md").write_text("short\n")
    rail = skilled()
    activate(rail, "commit")
    assert "read" in names(rail)
    assert rail.read(".claude/skills/commit/style.md").content.strip() == "short"
    assert refusal(rail, "read", path="a.py") == ("POLICY_DENIED", "skill.commit")


def test_a_skill_that_names_no_tools_narrows_nothing(skilled: Make, project: Path) -> None:
    rail = skilled()
    activate(rail, "house-style")
    assert names(rail) == {*BASE_NAMES, *OWN}
    assert refusal(rail, "exec", command="ls") == ("", None)


def test_of_two_active_skills_each_can_do_its_work(skilled: Make, project: Path) -> None:
    rail = skilled()
    activate(rail, "commit")
    activate(rail, "release-notes")
    activate(rail, "house-style")
    assert rail.active_skills() == ("commit", "house-style", "release-notes")
    assert names(rail) == {"read", "write", "exec", "process", *OWN}
    for command in ("git status", "git log", "git log && git status"):
        assert rail.call("exec", {"command": command}).error is None
    assert refusal(rail, "exec", command="git push") == ("POLICY_DENIED", "skill.commit")
    activate(rail, "review")
    assert refusal(rail, "read", path="a.py") == ("", None)


def test_never_more_than_without_it(skilled: Make, project: Path) -> None:
    settings = Settings(mode="plan", tools=Tools(enable=OWN, disable=("ls",), deny=("fs.write",)))
    rail = skilled(settings=settings)
    before = names(rail)
    for name in ("review", "release-notes", "commit"):
        activate(rail, name)
        assert names(rail) <= before
    assert rail.call("exec", {"command": "git add a.py"}).error is not None


def test_a_custom_tool_by_its_own_name_and_a_servers_by_its_prefix(skilled: Make, put: Put, workspace: Path) -> None:
    @tool(name="WebFetch", read_only=True, auto_execute=True)
    def fetch(url: str) -> str:
        """Fetches."""
        return url

    @tool(name="mcp__tracker__list", read_only=True, auto_execute=True)
    def listing() -> str:
        """Lists."""
        return "none"

    def skill(name: str, tools: str) -> None:
        put(workspace / ".claude/skills", name, f"---\nname: {name}\ndescription: d\nallowed-tools: {tools}\n---\n")

    skill("plain", "WebFetch mcp__tracker")
    skill("limited", "WebFetch(domain:example.org) mcp__tracker__*")
    skill("other", "mcp__track")
    rail = skilled(tools=(fetch, listing))
    assert [entry.warnings for entry in rail.skills()] == [(), (), ()]
    activate(rail, "plain")
    assert names(rail) == {"WebFetch", "mcp__tracker__list", *OWN}
    assert rail.call("WebFetch", {"url": "x"}).ok
    activate(rail, "plain", "deactivate")
    activate(rail, "limited")
    assert names(rail) == {"WebFetch", "mcp__tracker__list", *OWN}
    assert refusal(rail, "WebFetch", url="x") == ("POLICY_DENIED", "skill.limited")
    activate(rail, "limited", "deactivate")
    activate(rail, "other")
    assert names(rail) == set(OWN)


def test_what_is_active_outlives_a_restart_and_what_becomes_of_its_file(skilled: Make, project: Path) -> None:
    first = skilled()
    activate(first, "commit")
    first.close()
    file = project / ".claude/skills/commit/SKILL.md"
    file.write_text("---\nname: commit\ndescription: d\nallowed-tools: Bash\n---\n")
    second = skilled()
    assert refusal(second, "exec", command="rm a.py") == ("POLICY_DENIED", "skill.commit")
    file.unlink()
    entry = next(entry for entry in second.skills() if entry.name == "commit")
    assert (entry.active, entry.usable, entry.source) == (True, False, "gone")
    assert entry.allowed_tools is not None
    activate(second, "commit", "deactivate")
    assert "write" in names(second)


def test_a_session_that_does_not_offer_the_tools_is_held_to_it_too(skilled: Make, project: Path) -> None:
    activate(skilled(), "review")
    assert names(skilled(settings=Settings(mode="full"))) == {"read", "grep", "find", "ls"}


def test_another_process_sees_at_its_next_call_what_was_activated(skilled: Make, project: Path) -> None:
    one, other = skilled(), skilled()
    assert other.call("ls", {"path": "."}).ok
    activate(one, "commit")
    assert refusal(other, "ls", path=".")[0] == "UNKNOWN_TOOL"
    activate(one, "commit", "deactivate")
    assert other.call("ls", {"path": "."}).ok


def test_a_session_that_never_had_one_does_not_ask_its_journal_again(skilled: Make, project: Path) -> None:
    one, other = skilled(), skilled()
    asked: list[str] = []
    one._session.resources.database.connection.set_trace_callback(asked.append)
    assert one.read("a.py").ok
    assert not [statement for statement in asked if "FROM skill" in statement]
    activate(other, "house-style")
    activate(other, "house-style", "deactivate")
    assert one.read("a.py").ok
    assert [statement for statement in asked if "FROM skill" in statement]


def test_what_is_active_counts_whatever_becomes_of_the_mark_of_it(skilled: Make, project: Path, tmp_path: Path) -> None:
    first = skilled()
    activate(first, "commit")
    first.close()
    [mark] = (tmp_path / "state").rglob("journal.db-skills")
    mark.unlink()
    assert refusal(skilled(), "exec", command="rm a.py") == ("POLICY_DENIED", "skill.commit")


def test_a_fork_begins_with_what_is_active(skilled: Make, project: Path) -> None:
    rail = skilled()
    activate(rail, "commit")
    fork = skilled(session=rail.fork_session("f"))
    assert refusal(fork, "exec", command="rm a.py") == ("POLICY_DENIED", "skill.commit")
    activate(fork, "commit", "deactivate")
    assert refusal(rail, "exec", command="rm a.py") == ("POLICY_DENIED", "skill.commit")


def test_other_sessions_are_not_concerned(skilled: Make, project: Path) -> None:
    activate(skilled(), "commit")
    assert names(skilled(session="t")) == {*BASE_NAMES, *OWN}


def test_killed_right_behind_the_activation_it_is_active_and_may_be_activated_again(
    skilled: Make, project: Path, tmp_path: Path
) -> None:
    skilled().close()
    script = f"""
import os, signal
from handrail import Handrail
from handrail.protocol.events import Notice
from handrail.settings import Settings
from handrail.settings.model import Tools
settings = Settings(mode="full", tools=Tools(enable=("skill_control",)))
rail = Handrail({str(project)!r}, session="s", state_dir={str(tmp_path / "state")!r}, settings=settings)
rail.subscribe(lambda event: os.kill(os.getpid(), signal.SIGKILL) if isinstance(event, Notice) else None)
rail.call("skill_control", {{"name": "commit", "action": "activate"}}, tool_call_id="c1")
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, env=dict(os.environ))
    assert done.returncode == -signal.SIGKILL
    rail = skilled()
    assert refusal(rail, "exec", command="rm a.py") == ("POLICY_DENIED", "skill.commit")
    result = rail.call("skill_control", {"name": "commit", "action": "activate"}, tool_call_id="c1")
    assert result.ok
    assert rail.active_skills() == ("commit",)


def test_what_comes_behind_an_activation_in_its_batch_is_held_to_it(skilled: Make, project: Path) -> None:
    rail = skilled()
    asked = (
        ("skill_control", {"name": "commit", "action": "activate"}),
        ("exec", {"command": "git status"}),
        ("exec", {"command": "rm a.py"}),
        ("write", {"path": "b.py", "content": ""}),
    )
    now = datetime.now(UTC)
    calls = [
        ToolCall(tool_call_id=f"c{at}", name=name, args=args, trace_id="t", timestamp=now)
        for at, (name, args) in enumerate(asked)
    ]
    outcome = rail.batch(calls)
    assert isinstance(outcome, Done)
    codes = [result.error.code if result.error else None for result in outcome.results]
    assert codes == [None, None, "POLICY_DENIED", "UNKNOWN_TOOL"]
    assert (project / "a.py").exists()
    assert not (project / "b.py").exists()


def test_undo_is_a_persons_and_no_skill_is_in_its_way(skilled: Make, project: Path) -> None:
    rail = skilled()
    assert rail.write("a.py", "new\n").ok
    activate(rail, "commit")
    assert rail.undo().ok
    assert (project / "a.py").read_text() == "code\n"


def test_a_decision_can_be_made_again_from_what_was_recorded(skilled: Make, project: Path, tmp_path: Path) -> None:
    rail = skilled()
    activate(rail, "commit")
    refusal(rail, "exec", command="rm a.py")
    rail.close()
    folder = next(path.parent for path in (tmp_path / "state").rglob("journal.db") if path.parent.name == "s")
    last = list(list_past_calls(str(folder), None))[-1]
    from handrail.tools.exec.spec import EXEC

    assert decide(EXEC, None, last.decided.facts, PolicyConfig("full")) == last.decided.decision
    assert last.decided.decision.rule == "skill.commit"


def test_a_persons_skill_brings_its_folder_read_only_while_it_is_active(
    skilled: Make, put: Put, home: Path, workspace: Path
) -> None:
    folder = put(home / ".claude/skills", "pdf-forms")
    script = f"{folder}/scripts/fields.py"
    rail = skilled()
    assert refusal(rail, "read", path=script)[0] == "OUTSIDE_WORKSPACE"
    result = activate(rail, "pdf-forms")
    assert (result.data.folder, result.data.files) == (str(folder), ("scripts/fields.py",))
    assert rail.read(script).content.strip() == 'print("no fields")'
    assert refusal(rail, "write", path=script, content="")[0] == "POLICY_DENIED"
    assert refusal(rail, "read", path=f"{home}/.claude/x")[0] == "OUTSIDE_WORKSPACE"
    rail.close()
    again = skilled()
    assert again.read(script).ok
    activate(again, "pdf-forms", "deactivate")
    assert refusal(again, "read", path=script)[0] == "OUTSIDE_WORKSPACE"


def test_its_script_runs_in_the_sandbox(skilled: Make, put: Put, home: Path) -> None:
    folder = put(home / ".claude/skills", "pdf-forms")
    rail = skilled()
    activate(rail, "pdf-forms")
    result = rail.exec(f"python3 {folder}/scripts/fields.py")
    assert result.data is not None
    assert (result.data.exit_code, result.data.output) == (0, "no fields\n")


def test_a_folder_that_holds_too_much_is_not_opened(skilled: Make, home: Path, workspace: Path) -> None:
    (home / ".claude/skills").mkdir(parents=True)
    (home / ".claude/skills/all").symlink_to(home)
    (home / "SKILL.md").write_text("---\nname: all\ndescription: d\n---\nHi.\n")
    (home / "diary.txt").write_text("dear diary\n")
    rail = skilled()
    result = activate(rail, "all")
    assert (result.data.folder, result.data.files) == (None, ())
    assert "its other files cannot be read here" in result.data.warnings
    assert refusal(rail, "read", path=f"{home}/diary.txt")[0] == "OUTSIDE_WORKSPACE"


def test_a_folder_in_the_workspace_stays_as_writable_as_it_is(
    skilled: Make, put: Put, home: Path, workspace: Path
) -> None:
    folder = put(workspace / "dotfiles", "house-style")
    (home / ".claude/skills").mkdir(parents=True)
    (home / ".claude/skills/house-style").symlink_to(folder)
    rail = skilled()
    activate(rail, "house-style")
    assert rail.write("dotfiles/house-style/more.md", "x\n").ok
