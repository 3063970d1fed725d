"""The programs in examples/ as a person starts them: a model calls tools, and the person answers at the prompt."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from provider import Call, Provider

from apart import environment_in

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
APPEND = "echo x; echo ran >>runs"
LINES: list[list[Call]] = [
    [("read", {"path": "a.txt"}), ("read", {"path": "none.txt"})],
    [("exec", {"command": APPEND})],
    [("write", {"path": "b.txt", "content": "no\n"})],
]
DEEP = os.environ.get("HANDRAIL_DEEP", "") not in {"", "0"}
ANSWERS = "\nuse c.txt\n"
"""The command is approved, the file is not."""
REASON = "use c.txt"


def todays(names: list[str], deep: bool) -> list[str]:
    """The two loops over an SDK share their code: every day one of them runs, which follows from their texts."""
    texts = b"".join((EXAMPLES / f"{name}.py").read_bytes() for name in names)
    return names if deep else [names[hashlib.sha256(texts).digest()[0] % len(names)]]


def start(name: str, place: Path, variables: dict[str, str]) -> str:
    """Runs an example in a new workspace. Returns its output."""
    workspace = place / "shop"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\n")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), "Make the prices."],
        cwd=workspace,
        env=environment_in(place) | variables,
        input=ANSWERS,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(os.listdir(workspace)) == ["a.txt", "runs"]
    assert (workspace / "runs").read_text() == "ran\n", "the preview was committed, and the command did not run again"
    return done.stdout


def check_results(results: list[str]) -> None:
    """The model reads results, errors and the reason of the person."""
    read, missing, ran, denied = results
    assert read == "one\n"
    assert "none.txt" in missing
    assert "x\n[exit code 0; changed 1 file" in ran
    assert REASON in denied


def check_prompts(shown: str) -> None:
    """The person sees the command with its changes, and the new file."""
    assert all(part in shown for part in (APPEND, "adds runs: 1 line added", "b.txt", "+no")), shown


@pytest.mark.parametrize("name", ["pydantic_ai_agent", *todays(["anthropic_sdk", "openai_sdk"], DEEP)])
def test_an_example_commits_an_approved_preview_and_tells_the_model_why_not(
    name: str, tmp_path: Path, provide: Callable[..., Provider]
) -> None:
    provider = provide(*LINES)
    shown = start(name, tmp_path, provider.environment)
    check_prompts(shown)
    check_results(provider.results)
    assert "Done." in shown


def test_the_openai_agents_example_does_the_same(tmp_path: Path, provide: Callable[..., Provider]) -> None:
    provider = provide(*LINES)
    shown = start("openai_agents", tmp_path, provider.environment | {"OPENAI_AGENTS_DISABLE_TRACING": "1"})
    check_prompts(shown)
    check_results(provider.results)
    assert "Done." in shown


def test_the_langchain_example_does_the_same(tmp_path: Path) -> None:
    script = [
        {"content": "", "tool_calls": [{"name": name, "args": args, "id": f"{at}.{number}", "type": "tool_call"}]}
        for at, line in enumerate(LINES)
        for number, (name, args) in enumerate(line)
    ]
    shown = start("langchain_agent", tmp_path, {"SCRIPT": json.dumps([*script, {"content": "Done."}])})
    check_prompts(shown)
    messages = shown.partition("Human Message")[2].split("Tool Message")[1:]
    assert len(messages) == 4
    for message, part in zip(messages, ("one", "none.txt", "[exit code 0; changed 1 file", REASON), strict=True):
        assert part in message.partition(" Ai Message ")[0]
    assert "Done." in shown
