"""Which layer decides, and what is said about it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from handrail.settings import LoadedSettings, SettingsError, load
from handrail.settings.embeddings import Embeddings


def load_with(
    tmp_path: Path, text: str | None = None, mode: str = "", flags: Mapping[str, object] = {}
) -> LoadedSettings:
    file = tmp_path / ".config" / "handrail" / "config.toml"
    if text is not None:
        file.parent.mkdir(parents=True)
        file.write_text(text)
    return load({"HOME": str(tmp_path), "HANDRAIL_MODE": mode}, flags)


def test_without_any_layer_every_value_is_the_default(tmp_path: Path) -> None:
    loaded = load_with(tmp_path)
    assert set(loaded.sources.values()) == {"default"}
    assert list(loaded.sources) == list(loaded.settings.flatten())
    assert loaded.notes == ()


def test_an_empty_user_file_changes_nothing(tmp_path: Path) -> None:
    assert load_with(tmp_path, "# nothing yet\n[tools]\n") == load_with(tmp_path)


def test_every_setting_can_be_set_in_the_user_file(tmp_path: Path) -> None:
    text = """
    mode = "auto"
    model = "anthropic:a"
    dialect = "codex"
    preview = "never"
    profile = "restricted"
    read.images = false
    ask.empty_preview = "ask"
    ask.expire = "12 h"
    [results]
    characters = 1000
    batch_characters = 2_000
    [store]
    keep = "90d"
    [journal]
    durability = "power"
    [events]
    jsonl = ".tasklogs"
    dialect = "devminds"
    [paths]
    read_only = ["/usr/share/dict", "~"]
    writable = ["~/scratch"]
    outside = "ask"
    client_roots = "read-only"
    [bulk]
    deleted = 5
    changed = 0
    bytes = 4096
    [restricted]
    commands = ["ls"]
    folders = [".minds"]
    [search]
    ignore = ["*.lock"]
    engine = "python"
    embeddings = { address = "http://127.0.0.1:11434/v1", model = "m" }
    [undo]
    days = 7
    [sandbox]
    tier = 2
    least = 1
    toolchains = ["~/.sdk", "/opt/sdk"]
    environment = ["NODE_ENV", "rack_env"]
    [network]
    allow = ["example.net:443", "*.example.org", "127.0.0.1:8080", "10.0.0.0/8:5432"]
    [mcp]
    wait = "20s"
    permission_wait = "1 min"
    [server]
    direct_calls = true
    body = "2 MB"
    requests = 20
    websockets = 8
    [lsp]
    servers = ["ty", "clangd=/opt/llvm/bin/clangd"]
    diagnostics = "warnings"
    wait = "3s"
    [limits]
    exec = "5 min"
    output = "1.5 MB"
    memory = 1073741824
    processes = 64
    file_size = "500 KB"
    preview = "100 MB"
    waiting = "1 TB"
    idle = "2 h"
    sessions = 8
    [agent]
    calls = 10
    tokens = 20_000
    repeats = 3
    attempts = 2
    full = 0.5
    window = 8000
    map = 500
    [tools]
    enable = ["todo"]
    disable = ["exec"]
    deny = ["net.connect", "git.write"]
    folders = ["/opt/tools"]
    installed = true
    repair_case = true
    [skills]
    enabled = false
    folders = ["~/shared/skills"]
    disable = ["deploy"]
    """
    loaded = load_with(tmp_path, text)
    assert loaded.settings.flatten() == {
        "mode": "auto",
        "model": "anthropic:a",
        "dialect": "codex",
        "preview": "never",
        "ask.empty_preview": "ask",
        "ask.expire": "12 h",
        "profile": "restricted",
        "tools.enable": ("todo",),
        "tools.disable": ("exec",),
        "tools.deny": ("net.connect", "git.write"),
        "tools.folders": ("/opt/tools",),
        "tools.installed": True,
        "tools.repair_case": True,
        "skills.enabled": False,
        "skills.folders": (f"{tmp_path}/shared/skills",),
        "skills.disable": ("deploy",),
        "read.images": False,
        "results.characters": 1000,
        "results.batch_characters": 2000,
        "journal.durability": "power",
        "store.keep": "90d",
        "events.jsonl": ".tasklogs",
        "events.dialect": "devminds",
        "paths.read_only": ("/usr/share/dict", str(tmp_path)),
        "paths.writable": (f"{tmp_path}/scratch",),
        "paths.outside": "ask",
        "paths.client_roots": "read-only",
        "bulk.deleted": 5,
        "bulk.changed": 0,
        "bulk.bytes": 4096,
        "restricted.commands": ("ls",),
        "restricted.folders": (".minds",),
        "search.ignore": ("*.lock",),
        "search.engine": "python",
        "search.embeddings": Embeddings(address="http://127.0.0.1:11434/v1", model="m"),
        "undo.days": 7,
        "sandbox.tier": 2,
        "sandbox.least": 1,
        "sandbox.toolchains": (f"{tmp_path}/.sdk", "/opt/sdk"),
        "sandbox.environment": ("NODE_ENV", "rack_env"),
        "network.allow": ("example.net:443", "*.example.org", "127.0.0.1:8080", "10.0.0.0/8:5432"),
        "mcp.wait": "20s",
        "mcp.permission_wait": "1 min",
        "server.direct_calls": True,
        "server.body": "2 MB",
        "server.requests": 20,
        "server.websockets": 8,
        "lsp.servers": ("ty", "clangd=/opt/llvm/bin/clangd"),
        "lsp.diagnostics": "warnings",
        "lsp.wait": "3s",
        "limits.exec": "5 min",
        "limits.output": "1.5 MB",
        "limits.memory": 1 << 30,
        "limits.processes": 64,
        "limits.file_size": "500 KB",
        "limits.preview": "100 MB",
        "limits.waiting": "1 TB",
        "limits.idle": "2 h",
        "limits.sessions": 8,
        "agent.calls": 10,
        "agent.tokens": 20_000,
        "agent.repeats": 3,
        "agent.attempts": 2,
        "agent.full": 0.5,
        "agent.window": 8000,
        "agent.map": 500,
    }
    assert set(loaded.sources.values()) == {f"user file {tmp_path}/.config/handrail/config.toml"}


def test_a_flag_beats_the_user_file_and_only_for_its_own_key(tmp_path: Path) -> None:
    text = '[tools]\nenable = ["todo"]\ndisable = ["exec"]\n'
    loaded = load_with(tmp_path, text, flags={"tools.enable": ["memory"], "read.images": None})
    assert loaded.settings.tools.enable == ("memory",)
    assert loaded.settings.tools.disable == ("exec",)
    assert loaded.sources["tools.enable"] == "flag"
    assert loaded.sources["tools.disable"].startswith("user file ")
    assert loaded.sources["read.images"] == "default"


MODES = [
    # (user file, environment, flag), (mode, the word its source begins with), whether a note is due
    ((None, "", None), ("ask", "default"), False),
    ((None, "plan", None), ("plan", "environment"), False),
    ((None, "ask", None), ("ask", "environment"), False),
    ((None, "auto", None), ("ask", "default"), True),
    ((None, "full", None), ("ask", "default"), True),
    (("plan", "ask", None), ("plan", "user"), True),
    (("auto", "full", None), ("auto", "user"), True),
    (("full", "", None), ("full", "user"), False),
    (("full", "auto", None), ("auto", "environment"), False),
    (("full", "full", None), ("full", "environment"), False),
    (("plan", "plan", "full"), ("full", "flag"), False),
    (("ask", "full", "plan"), ("plan", "flag"), True),
]


@pytest.mark.parametrize(("layers", "expected", "noted"), MODES)
def test_the_environment_only_tightens_the_mode_and_the_flag_decides(
    tmp_path: Path, layers: tuple[str | None, str, str | None], expected: tuple[str, str], noted: bool
) -> None:
    file, environment, flag = layers
    loaded = load_with(tmp_path, f'mode = "{file}"' if file else None, environment, {"mode": flag})
    assert (loaded.settings.mode, loaded.sources["mode"].split()[0]) == expected
    assert bool(loaded.notes) == noted


def test_a_looser_mode_in_the_environment_is_ignored_in_words(tmp_path: Path) -> None:
    assert load_with(tmp_path, mode="full").notes == (
        "HANDRAIL_MODE=full is ignored: the mode is ask (default), and the environment can make it stricter,"
        " not looser. To loosen it, use the flag or the user file.",
    )


@pytest.mark.parametrize("mode", ["Ask", "yolo", " plan", "\udcff"])
def test_an_unknown_mode_in_the_environment_is_refused(tmp_path: Path, mode: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_with(tmp_path, mode=mode, flags={"mode": "plan"})
    assert caught.value.problems == (f"HANDRAIL_MODE is {mode!r}; allowed: plan, ask, auto or full",)


def test_the_source_is_the_named_variable_or_file(tmp_path: Path) -> None:
    assert load_with(tmp_path, mode="plan").sources["mode"] == "environment HANDRAIL_MODE"


@pytest.mark.parametrize(
    ("flags", "problems"),
    [
        ({"mode": "\udcff"}, (r"mode is '\udcff'; allowed: plan, ask, auto or full",)),
        ({"read.image": True}, ("read.image is not a setting; did you mean read.images?",)),
        ({"tools": {}, "tools.enable": ["todo"]}, ("tools is {}; allowed: a table, written [tools]",)),
        (
            {"mode": "maybe", "read.images": "yes"},
            (
                "mode is 'maybe'; allowed: plan, ask, auto or full",
                "read.images is 'yes'; allowed: true or false",
            ),
        ),
    ],
)
def test_wrong_flags_are_all_reported(tmp_path: Path, flags: dict[str, object], problems: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError, match=r"\AThe flags cannot be used:\n") as caught:
        load_with(tmp_path, flags=flags)
    assert caught.value.problems == problems


def test_a_home_folder_is_found_in_the_given_environment_for_flags_too(tmp_path: Path) -> None:
    loaded = load_with(tmp_path, flags={"paths.read_only": ("~/a", "~//a", "~/", "/b/~/c")})
    assert loaded.settings.paths.read_only == (f"{tmp_path}/a", f"{tmp_path}/a", str(tmp_path), "/b/~/c")
