"""Programs of others with an agent: how each is started without a person, with a model that is a script."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.wires import anthropic_wire, openai_wire, responses_wire
from tests.wires.server import Answer, Received, WireServer

from handrail.mcp.hosts.hosts import CLAUDE_TOOLS


class Host(NamedTuple):
    """One of them."""

    name: str
    """What --config calls it."""
    program: str
    """Below node_modules."""
    words: tuple[str, ...]
    answer: Callable[..., Answer]
    """Words or calls on its wire."""
    called: str
    """Its name for a tool of ours."""
    off: frozenset[str]
    """What it must not offer its model."""
    offered: Callable[[dict[str, Any]], set[str]]
    results: Callable[[dict[str, Any]], list[str]]
    """What the model was told of its calls, in a question."""


class Model(WireServer):
    """Plays its lines to whoever has tools, and has a word for all other questions."""

    def __init__(self, host: Host, *lines: list[tuple[str, dict[str, Any]]]) -> None:
        super().__init__()
        self._host, self._lines = host, list(lines)
        self.always(self._play)

    def check(self, question: Received) -> list[str]:
        """Nothing is wrong with what others ask."""
        return []

    def _play(self, question: Received) -> Answer:
        if question.path == "/":  # whether anybody is there
            return Answer(without_head=True, ending="drop")
        if not self._host.offered(question.body) or not self._lines:
            return self._host.answer("Done.")
        line = self._lines.pop(0)
        made = f"call_{len(self.received)}"
        calls = [
            (f"{made}_{at}", self._host.called.format(name), json.dumps(args)) for at, (name, args) in enumerate(line)
        ]
        return self._host.answer(calls=calls)

    @property
    def questions(self) -> list[dict[str, Any]]:
        """The questions that had tools."""
        return [one.body for one in self.received if self._host.offered(one.body)]


def prepare(host: Host, home: Path, workspace: Path, model: Model) -> dict[str, str]:
    """Tells a host of its model, as a person would; the variables that it needs."""
    if host.name == "codex":
        provider = (
            f'name = "scripted"\nbase_url = "{model.origin}/v1"\nenv_key = "SCRIPTED_KEY"\nwire_api = "responses"'
        )
        (home / ".codex").mkdir()
        (home / ".codex" / "config.toml").write_text(
            'model = "scripted"\nmodel_provider = "scripted"\n'
            f"[model_providers.scripted]\n{provider}\n"
            f'[projects."{workspace}"]\ntrust_level = "trusted"\n'
        )
        return {"SCRIPTED_KEY": "x"}
    if host.name == "opencode":
        options = {"baseURL": f"{model.origin}/v1", "apiKey": "x"}
        own = {"name": "scripted", "tool_call": True, "limit": {"context": 200_000, "output": 8_000}}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m": own}}
        told = {"autoupdate": False, "model": "scripted/m", "small_model": "scripted/m"}
        (home / ".config" / "opencode").mkdir(parents=True)
        (home / ".config" / "opencode" / "opencode.json").write_text(
            json.dumps({**told, "provider": {"scripted": provider}})
        )
        return {}
    quiet = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return {"ANTHROPIC_BASE_URL": model.origin, "ANTHROPIC_API_KEY": "sk-ant-x", **quiet}


def _of_codex(body: dict[str, Any]) -> set[str]:
    spaces = [(f"{one['name']}::", one["tools"]) for one in body.get("tools", []) if one["type"] == "namespace"]
    nested = {prefix + inner["name"] for prefix, tools in spaces for inner in tools}
    return nested | {one["name"] for one in body.get("tools", []) if "name" in one}


def _blocks(body: dict[str, Any]) -> list[str]:
    content = [
        block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    results = [block["content"] for block in content if block["type"] == "tool_result"]
    return [one if isinstance(one, str) else "".join(part["text"] for part in one) for one in results]


HOSTS = (
    Host(
        name="claude-code",
        program="@anthropic-ai/claude-code-linux-x64/claude",
        words=("-p", "Look.", "--allowedTools", "mcp__handrail"),
        answer=anthropic_wire.answer,
        called="mcp__handrail__{}",
        off=frozenset(CLAUDE_TOOLS),
        offered=lambda body: {one["name"] for one in body.get("tools", [])},
        results=_blocks,
    ),
    Host(
        name="codex",
        program="@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        words=(
            *("exec", "--strict-config", "--skip-git-repo-check"),
            *("-c", 'mcp_servers.handrail.default_tools_approval_mode="approve"', "Look."),
        ),
        answer=responses_wire.answer,
        called="mcp__handrail::{}",
        off=frozenset(("shell", "local_shell", "exec_command", "shell_command", "write_stdin")),
        offered=_of_codex,
        results=lambda body: [
            one["output"][-1]["text"] for one in body["input"] if one["type"] == "function_call_output"
        ],
    ),
    Host(
        name="opencode",
        program="opencode-linux-x64/bin/opencode",
        words=("run", "Look."),
        answer=openai_wire.answer,
        called="handrail_{}",
        off=frozenset(("bash", "edit", "write", "apply_patch", "patch", "multiedit")),
        offered=lambda body: {one["function"]["name"] for one in body.get("tools", [])},
        results=lambda body: [one["content"] for one in body["messages"] if one["role"] == "tool"],
    ),
)
