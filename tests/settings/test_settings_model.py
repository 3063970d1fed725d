"""The model and its reference say the same."""

import re
import subprocess
import sys
from typing import get_args

import msgspec
import pytest

from handrail.protocol.permissions import Permission
from handrail.settings import Settings, list_settings

START_UP = """
import sys
import msgspec, handrail.protocol.decisions, handrail.protocol.permissions, handrail.protocol.wire
import handrail.protocol.text
before = set(sys.modules)
from handrail.settings import load
load({"HOME": "/nowhere"}, {"mode": "plan"})
print(*sorted(set(sys.modules) - before))
"""


def test_the_defaults_are_the_documented_ones() -> None:
    assert Settings().flatten() == {
        "mode": "ask",
        "model": None,
        "dialect": None,
        "preview": "when-asked",
        "ask.empty_preview": "keep",
        "ask.expire": "7d",
        "profile": "standard",
        "tools.enable": (),
        "tools.disable": (),
        "tools.deny": (),
        "tools.folders": (),
        "tools.installed": False,
        "tools.repair_case": False,
        "skills.enabled": True,
        "skills.folders": (),
        "skills.disable": (),
        "read.images": True,
        "results.characters": 30_000,
        "results.batch_characters": 100_000,
        "journal.durability": "crash",
        "store.keep": "365d",
        "events.jsonl": None,
        "events.dialect": None,
        "paths.read_only": (),
        "paths.writable": (),
        "paths.outside": "deny",
        "paths.client_roots": "ignore",
        "bulk.deleted": 20,
        "bulk.changed": 200,
        "bulk.bytes": "256 MB",
        "restricted.commands": ("ls", "cat", "git status", "git log --oneline", "node -v", "pnpm -v"),
        "restricted.folders": (".minds", ".tasklogs"),
        "search.ignore": (),
        "search.engine": "auto",
        "search.embeddings": None,
        "undo.days": 30,
        "sandbox.tier": 3,
        "sandbox.least": 0,
        "sandbox.toolchains": (),
        "sandbox.environment": (),
        "network.allow": (),
        "mcp.wait": "5s",
        "mcp.permission_wait": "10s",
        "server.direct_calls": False,
        "server.body": "1 MB",
        "server.requests": 100,
        "server.websockets": 256,
        "lsp.servers": (),
        "lsp.diagnostics": "errors",
        "lsp.wait": "1.5s",
        "limits.exec": "120s",
        "limits.output": "4 MB",
        "limits.memory": "4 GB",
        "limits.processes": 512,
        "limits.file_size": "2 GB",
        "limits.preview": "1 GB",
        "limits.waiting": "4 GB",
        "limits.idle": "30 min",
        "limits.sessions": 64,
        "agent.calls": 200,
        "agent.tokens": None,
        "agent.repeats": 4,
        "agent.attempts": 5,
        "agent.full": 0.8,
        "agent.window": None,
        "agent.map": 0,
    }


def test_every_setting_has_one_line_of_help_in_the_order_of_the_model() -> None:
    assert list(list_settings()) == list(Settings().flatten())
    for entry in list_settings().values():
        assert re.fullmatch(r"[A-Z].{10,90}\.", entry.help)


def test_the_reference_names_every_permission() -> None:
    assert list_settings()["tools.deny"].allowed == "a list of " + ", ".join(get_args(Permission))


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Settings().mode = "full"  # pyright: ignore[reportAttributeAccessIssue]


def test_a_json_schema_can_be_made_of_the_model() -> None:
    schema = msgspec.json.schema(Settings)
    assert schema["$defs"]["Settings"]["additionalProperties"] is False


def test_start_up_without_a_file_loads_no_module_but_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", START_UP], capture_output=True, text=True, check=True)
    assert [name for name in done.stdout.split() if not name.startswith("handrail.settings")] == []
