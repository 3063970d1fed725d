"""Errors of tools, as people read them: every code has a text, and no part for a model reaches them."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from tests.test_prose import rules

from handrail.cli.errors import print_tool_error
from handrail.protocol.errors import CODES, ErrorInfo
from handrail.terminal.call_lines import describe_to_person
from handrail.terminal.error_text import _TEXTS  # pyright: ignore[reportPrivateUsage]

FOR_MODELS = re.compile(r"Do not (repeat|try)|Continue without|Your arguments|[Tt]he user\b(?! file)|Call again\.")
SOURCES = Path(__file__).parents[2] / "src/handrail"
ROOMS = ("runtime", "tools/exec", "tools/custom.py", "sandbox", "process", "workspace", "policy", "mcp/client")
NEVER_ERRORS = ("the user's keys are in no namespace", "the user asked for it", "Run one shell command in")
DENIED = {"answer": "deny", "reason": "use the staging config."}


def list_model_messages() -> list[str]:
    """The texts of the code that have a part for a model."""
    files = [file for room in ROOMS for file in [SOURCES / room, *(SOURCES / room).rglob("*.py")] if file.is_file()]
    messages = (one for file in files for one in rules.list_messages(ast.parse(file.read_text()), str(file)))
    texts = {one.text for one in messages if FOR_MODELS.search(one.text)}
    return sorted(text for text in texts if not text.startswith(NEVER_ERRORS))


def test_every_code_has_a_text_for_people() -> None:
    assert set(_TEXTS) == set(CODES)


@pytest.mark.parametrize("text", list_model_messages())
def test_no_part_for_a_model_reaches_a_person(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    if text.startswith("The user denied the request"):
        error = ErrorInfo(code="PERMISSION_DENIED", message=text, details=DENIED)
    else:
        error = ErrorInfo(code="UNAVAILABLE", message=f"It failed. {text}")
    print_tool_error(error, "exec", {"command": "make fmt"})
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert not FOR_MODELS.search(shown)


def test_a_person_reads_their_own_denial(capsys: pytest.CaptureFixture[str]) -> None:
    error = ErrorInfo(code="PERMISSION_DENIED", message="The user denied the request.", details=DENIED)
    print_tool_error(error, "exec", {"command": "make fmt"})
    assert capsys.readouterr().err == "error: you denied make fmt: use the staging config. Nothing was run.\n"
    assert describe_to_person(error) == "denied: use the staging config."


def test_a_denial_in_the_log_is_for_people(run: Any) -> None:
    request = run("call", "write", '{"path": "a.txt", "content": "a"}', "--json").json["error"]["details"]["id"]
    run("approvals", "deny", request, "--reason", "not now")
    shown = run("log").out
    assert "PERMISSION_DENIED: denied: not now" in shown
    assert not FOR_MODELS.search(shown)
