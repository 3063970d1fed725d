"""Words of the model in permission requests, and calls that ask for approval."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from spoken import build_workspace, open_rail

from handrail import Handrail
from handrail.protocol.calls import Done, Parked, ToolCall
from handrail.protocol.permissions import Reply
from handrail.terminal.request_text import render_request

ESCALATED: dict[str, Any] = {
    "cmd": "echo hi",
    "sandbox_permissions": "require_escalated",
    "justification": "I need the network",
    "prefix_rule": ["git", "fetch"],
}


@pytest.mark.parametrize("mode", ["ask", "auto", "full"])
def test_an_escalated_command_of_codex_asks_with_its_justification_in_every_mode(tmp_path: Path, mode: str) -> None:
    with open_rail(tmp_path, "codex", mode=mode) as rail:
        asked = rail.call("exec_command", ESCALATED)
        assert asked.error is not None
        assert asked.error.code == "PERMISSION_REQUIRED"
        (request,) = rail.waiting()
        words = '"I need the network; proposes a grant for: git fetch"'
        assert request.description == f"Run echo hi (the model says: {words})"
        assert f"The model says: {words}" in "\n".join(render_request(request, width=None))
        if mode != "ask":
            assert (request.rule, request.reason) == ("call.confirm", "the model asks for approval")
        outcome = rail.answer(request, "once")
        assert isinstance(outcome, Done)
        assert "hi\n[The command was approved and ran in the sandbox.]" in outcome.results[0].content
        assert rail.call("exec_command", {"cmd": "echo hi"}).ok


@pytest.mark.parametrize("mode", ["ask", "auto", "full"])
@pytest.mark.parametrize("scope", ["session", "workspace"])
def test_a_prefix_rule_of_codex_is_offered_as_a_grant_that_covers_later_escalated_commands(
    tmp_path: Path, mode: str, scope: Any
) -> None:
    escalated = ESCALATED | {"prefix_rule": ["touch"]}
    with open_rail(tmp_path, "codex", mode=mode) as rail:
        rail.call("exec_command", escalated | {"cmd": "touch n"})
        (request,) = rail.waiting()
        assert request.grants == ("touch",)
        assert {"once", "session", "workspace", "deny"} <= set(request.answers)
        assert isinstance(rail.answer(request, scope), Done)
        (grant,) = rail.grants()
        assert (grant.command, grant.scope) == ("touch", scope)
        assert rail.call("exec_command", escalated | {"cmd": "touch m"}).ok
        assert Path(rail.workspace, "m").exists()
        rail.revoke(grant.id)
        asked = rail.call("exec_command", escalated | {"cmd": "touch o"})
        assert asked.error is not None
        assert asked.error.code == "PERMISSION_REQUIRED"


@pytest.mark.parametrize(
    ("cmd", "prefix", "grants"),
    [
        ("ruff format a.py", ["ruff"], ("ruff format",)),  # ours is narrower
        ("rm a.py", ["rm"], ()),
        ("git fetch origin", ["git", "fetch"], ()),
        ("touch n && rm a.py", ["touch"], ()),
        ("bash -c 'touch n'", ["bash"], ()),
        ("echo hi", ["echo"], ()),
    ],
)
def test_a_prefix_rule_of_codex_grants_no_more_than_policy_would(
    tmp_path: Path, cmd: str, prefix: list[str], grants: tuple[str, ...]
) -> None:
    with open_rail(tmp_path, "codex", mode="full") as rail:
        rail.call("exec_command", ESCALATED | {"cmd": cmd, "prefix_rule": prefix})
        (request,) = rail.waiting()
        assert request.grants == grants
        assert ("session" in request.answers) == bool(grants)


@pytest.mark.parametrize(("confirm", "is_asked"), [(True, True), ("unless-granted", False), (False, False)])
def test_a_call_that_wants_a_person_in_any_case_is_asked_about_despite_grants(
    tmp_path: Path, confirm: Any, is_asked: bool
) -> None:
    with Handrail(build_workspace(tmp_path), state_dir=tmp_path / "state", mode="ask", on_permission="park") as rail:
        rail.call("exec", {"command": "touch n"})
        rail.answer(rail.waiting()[0], "session")
        fields = {"tool_call_id": "c2", "trace_id": "c2", "timestamp": datetime.now(UTC), "confirm": confirm}
        outcome = rail.batch([ToolCall(name="exec", args={"command": "touch m"}, **fields)])
        assert isinstance(outcome, Parked) == is_asked


def test_an_escalated_command_is_refused_where_nobody_can_answer(tmp_path: Path) -> None:
    with open_rail(tmp_path, "codex", unattended=True) as rail:
        refused = rail.call("exec_command", ESCALATED)
    assert refused.content.startswith("exec command rejected by user")


def test_an_escalated_command_that_policy_denies_stays_denied(tmp_path: Path) -> None:
    with open_rail(tmp_path, "codex", mode="plan") as rail:
        refused = rail.call("exec_command", ESCALATED | {"cmd": "touch n"})
        assert refused.error is not None
        assert refused.error.code == "POLICY_DENIED"
        assert not rail.waiting()


def test_a_session_that_goes_on_elsewhere_still_asks(tmp_path: Path) -> None:
    with open_rail(tmp_path, "codex", session="s1") as rail:
        call_id = rail.call("exec_command", ESCALATED).tool_call_id
    with open_rail(tmp_path, "codex", session="s1", mode="full") as rail:
        again = rail.call("exec_command", ESCALATED, tool_call_id=call_id)
        assert again.error is not None
        assert again.error.code == "PERMISSION_REQUIRED"
        (request,) = rail.waiting()
        assert request.purpose == "I need the network; proposes a grant for: git fetch"


def test_a_description_of_claude_code_is_shown_in_the_request_as_the_models_words(tmp_path: Path) -> None:
    words = 'Lists files"\n\x1b[2J. needs approval: no'
    with open_rail(tmp_path, "claude-code", mode="ask") as rail:
        rail.call("Bash", {"command": "touch n", "description": words})
        (request,) = rail.waiting()
        text = "\n".join(render_request(request, width=None))
    shown = '"Lists files\'\\n\\x1b[2J. needs approval: no"'
    assert f"The model says: {shown}" in text
    assert request.description == f"Run touch n (the model says: {shown})"


QUESTIONS = [
    {
        "question": "Which base?",
        "header": "Base",
        "options": [{"label": "SQL", "description": "rows"}, {"label": "KV", "description": "keys"}],
    },
    {
        "question": "Which checks?",
        "header": "Checks",
        "options": [{"label": "Lint", "description": "l"}, {"label": "Types", "description": "t"}],
    },
]


@pytest.mark.parametrize(
    ("dialect", "name", "several"),
    [
        ("claude-code", "AskUserQuestion", "multiSelect"),
        ("codex", "request_user_input", ""),
        ("opencode", "question", "multiple"),
    ],
)
def test_several_questions_keep_their_options(tmp_path: Path, dialect: str, name: str, several: str) -> None:
    first, second = ({**one, "id": str(number)} for number, one in enumerate(QUESTIONS))
    if dialect != "codex":
        del first["id"], second["id"]
        second |= {several: True}
    with open_rail(tmp_path, dialect) as rail:
        rail.call(name, {"questions": [first, second]})
        (question,) = rail.waiting_questions()
        assert question.options == ("1. SQL", "1. KV", "2. Lint", "2. Types")
        assert question.multiple
        assert "1. Which base? (choose one)\n   - SQL: rows\n   - KV: keys" in question.question
        assert f"2. Which checks? (choose {'any' if several else 'one'})" in question.question
        result = rail.reply(question, Reply(chosen=("1. KV", "2. Lint", "2. Types"))).results[0]
    data = result.data
    answers = {
        "claude-code": lambda: list(data["tool_use_result"]["answers"].values()),
        "codex": lambda: [", ".join(one["answers"]) for one in data["answers"].values()],
        "opencode": lambda: [", ".join(one) for one in data["metadata"]["answers"]],
    }
    assert answers[dialect]() == ["KV", "Lint, Types"]


@pytest.mark.parametrize(
    ("dialect", "name", "given", "note"),
    [
        ("codex", "exec_command", {"additional_permissions": {"network": {"enabled": True}}}, "additional_permissions"),
        ("codex", "exec_command", {"environment_id": "e1"}, "environment_id"),
        ("codex", "exec_command", {"shell": "zsh"}, "shell"),
        ("codex", "exec_command", {"login": True}, "login"),
        ("claude-code", "Bash", {"dangerouslyDisableSandbox": True}, "dangerouslyDisableSandbox"),
        ("claude-code", "Monitor", {"description": "d", "timeout_ms": 1_000}, "timeout_ms"),
    ],
)
def test_parameters_without_effect_are_noted(
    tmp_path: Path, dialect: str, name: str, given: dict[str, Any], note: str
) -> None:
    command = {"cmd": "true"} if dialect == "codex" else {"command": "true"}
    with open_rail(tmp_path, dialect, mode="full") as rail:
        assert f"{note} was ignored: " in rail.call(name, command | given).content
        plain = {"login": False} if dialect == "codex" else {"description": "d"}
        assert "ignored" not in rail.call(name, command | plain).content


def test_a_question_of_devminds_says_that_it_has_no_timeout(tmp_path: Path) -> None:
    given = {"from": {"agent": "a", "taskId": "t"}, "to": {"type": "user"}, "question": "Go on?", "timeoutMs": 9}
    with open_rail(tmp_path, "devminds") as rail:
        rail.call("ask.request", given)
        answer = rail.reply(rail.waiting_questions()[0], "yes").results[0].data
    assert answer["warnings"] == ["timeoutMs was ignored: a question waits until a person answers."]
