"""Words of the model in permission requests, and calls that ask for approval."""

from pathlib import Path
from typing import Any

import pytest
from spoken import open_rail

from handrail.protocol.calls import Done
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


@pytest.mark.parametrize(
    ("given", "note"),
    [
        ({"additional_permissions": {"network": {"enabled": True}}}, "additional_permissions was ignored"),
        ({"environment_id": "e1"}, "environment_id was ignored"),
        ({"shell": "zsh"}, "shell was ignored"),
        ({"login": True}, "login was ignored"),
    ],
)
def test_parameters_of_codex_without_effect_are_noted(tmp_path: Path, given: dict[str, Any], note: str) -> None:
    with open_rail(tmp_path, "codex") as rail:
        assert note in rail.call("exec_command", {"cmd": "true", **given}).content
        assert "ignored" not in rail.call("exec_command", {"cmd": "true", "login": False}).content
