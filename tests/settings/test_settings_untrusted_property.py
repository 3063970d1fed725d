"""Whatever a project's file holds: until it is trusted, nothing is looser than without it."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from handrail.settings import LoadedSettings, list_settings, load

MODES = ("plan", "ask", "auto", "full")
TIMES = {"500 ms": 0.5, 1: 1, "60s": 60, "1 min": 60, "1.5 min": 90, 120: 120, "120s": 120, "10 min": 600}
IDLE = {"1 s": 1, "30 min": 1_800, "168 h": 604_800}
SIZES = {"16 MB": 16 << 20, "16777216 B": 16 << 20, "0.02 GB": 0.02 * 2**30, 33554432: 2**25, "64 MB": 64 << 20}
AMOUNTS = {
    **TIMES,
    "1.5s": 1.5,
    "5s": 5,
    "10s": 10,
    **IDLE,
    **SIZES,
    "1 MB": 1 << 20,
    "4 MB": 4 << 20,
    "256 MB": 256 << 20,
}
AMOUNTS |= {f"{number} GB": number << 30 for number in (1, 2, 3, 4)}


def one_of(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


def some_of(*values: str) -> st.SearchStrategy[Any]:
    return st.lists(one_of(*values), max_size=4)


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "mode": one_of(*MODES),
    "model": one_of("anthropic:a", "openai:b"),
    "dialect": one_of("codex", "opencode"),
    "preview": one_of("when-asked", "never"),
    "ask.empty_preview": one_of("keep", "ask"),
    "ask.expire": one_of("12 h", "7d", "1 d"),
    "profile": one_of("standard", "restricted"),
    "tools.enable": some_of("todo", "memory", "delete"),
    "tools.disable": some_of("exec", "write", "grep"),
    "tools.deny": some_of("fs.write", "proc.exec", "net.connect"),
    "tools.folders": some_of("/opt/a", "/opt/b", "~/c"),
    "tools.installed": st.booleans(),
    "tools.repair_case": st.booleans(),
    "skills.enabled": st.booleans(),
    "skills.folders": some_of("/opt/a", "/opt/b", "~/c"),
    "skills.disable": some_of("commit", "review", "deploy"),
    "read.images": st.booleans(),
    "results.characters": st.integers(1_000, 100_000),
    "results.batch_characters": st.integers(1_000, 200_000),
    "journal.durability": one_of("crash", "power"),
    "store.keep": one_of("30d", "365d"),
    "events.jsonl": one_of(".tasklogs", "logs"),
    "events.dialect": one_of("deepchat", "devminds"),
    "paths.read_only": some_of("/a", "/b", "~/c"),
    "paths.writable": some_of("/a", "/b", "~/c"),
    "paths.outside": one_of("deny", "ask"),
    "paths.client_roots": one_of("ignore", "read-only", "writable"),
    "bulk.deleted": st.integers(0, 100),
    "bulk.changed": st.integers(0, 1_000),
    "bulk.bytes": one_of(*SIZES),
    "restricted.commands": some_of("ls", "cat", "git status", "make", "rm"),
    "restricted.folders": some_of(".minds", ".tasklogs", "src"),
    "search.ignore": some_of("*.lock", "vendor", "secret"),
    "search.engine": one_of("auto", "ripgrep", "python"),
    "search.embeddings": st.builds(lambda model: {"address": "http://a/v1", "model": model}, one_of("m", "n")),
    "undo.days": st.integers(1, 100),
    "sandbox.tier": st.integers(0, 3),
    "sandbox.least": st.integers(0, 3),
    "sandbox.toolchains": some_of("/opt/a", "/opt/b", "~/c"),
    "sandbox.environment": some_of("NODE_ENV", "RACK_ENV", "FOO"),
    "network.allow": some_of("a.example.org:443", "*.example.org", "10.0.0.0/8:80", "10.1.2.3:80"),
    "mcp.wait": one_of(*TIMES),
    "mcp.permission_wait": one_of(*TIMES),
    "server.direct_calls": st.booleans(),
    "server.body": one_of(*SIZES),
    "server.requests": st.integers(1, 1_000),
    "server.websockets": st.integers(1, 1_000),
    "lsp.servers": some_of("ty", "clangd", "*.x=./server"),
    "lsp.diagnostics": one_of("off", "errors", "warnings"),
    "lsp.wait": one_of(*TIMES),
    "limits.exec": one_of(*TIMES),
    "limits.output": one_of(*SIZES),
    "limits.memory": one_of(*SIZES, "3 GB"),
    "limits.processes": st.integers(8, 1_000),
    "limits.file_size": one_of(*SIZES),
    "limits.preview": one_of(*SIZES),
    "limits.waiting": one_of(*SIZES),
    "limits.idle": one_of(*IDLE),
    "limits.sessions": st.integers(1, 1_000),
    "agent.calls": st.integers(1, 1_000),
    "agent.tokens": st.integers(1, 1_000),
    "agent.repeats": st.integers(2, 100),
    "agent.attempts": st.integers(1, 100),
    "agent.full": one_of(0.1, 0.5, 0.8, 1.0),
    "agent.window": st.integers(2_000, 5_000),
    "agent.map": st.integers(0, 2_000),
}


def later_in(*strictest_first: object) -> Callable[[Any, Any], bool]:
    return lambda one, other: strictest_first.index(one) > strictest_first.index(other)


def has_more(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return not set(one) <= set(other)


def lacks_some(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return not set(other) <= set(one)


REACHED = {
    "a.example.org:443": {"a:443"},
    "*.example.org": {"a:443", "a:80", "b:443", "b:80"},
    "10.0.0.0/8:80": {"10.1.2.3:80", "10.4.5.6:80"},
    "10.1.2.3:80": {"10.1.2.3:80"},
}


def reaches_more(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return not {host for entry in one for host in REACHED[entry]} <= {
        host for entry in other for host in REACHED[entry]
    }


def higher(one: int, other: int) -> bool:
    return one > other


def lets_more(one: int | None, other: int | None) -> bool:
    return other is not None and (one is None or one > other)


def lower(one: int, other: int) -> bool:
    return one < other


def larger(one: str | int, other: str | int) -> bool:
    return AMOUNTS[one] > AMOUNTS[other]


def differs(one: object, other: object) -> bool:
    return one != other


LOOSER: dict[str, Callable[[Any, Any], bool]] = {
    "mode": later_in(*MODES),
    "model": differs,
    "dialect": differs,
    "preview": later_in("never", "when-asked"),
    "ask.empty_preview": later_in("ask", "keep"),
    "ask.expire": differs,
    "profile": later_in("restricted", "standard"),
    "tools.enable": has_more,
    "tools.disable": lacks_some,
    "tools.deny": lacks_some,
    "tools.folders": has_more,
    "tools.installed": higher,
    "tools.repair_case": higher,
    "skills.enabled": higher,
    "skills.folders": has_more,
    "skills.disable": lacks_some,
    "read.images": higher,
    "results.characters": higher,
    "results.batch_characters": higher,
    "journal.durability": later_in("power", "crash"),
    "store.keep": differs,
    "events.jsonl": differs,
    "events.dialect": differs,
    "paths.read_only": has_more,
    "paths.writable": has_more,
    "paths.outside": later_in("deny", "ask"),
    "paths.client_roots": later_in("ignore", "read-only", "writable"),
    "bulk.deleted": higher,
    "bulk.changed": higher,
    "bulk.bytes": larger,
    "restricted.commands": has_more,
    "restricted.folders": has_more,
    "search.ignore": lacks_some,
    "search.engine": later_in("python", "auto", "ripgrep"),
    "search.embeddings": differs,
    "undo.days": differs,
    "sandbox.tier": lower,
    "sandbox.least": lower,
    "sandbox.toolchains": has_more,
    "sandbox.environment": has_more,
    "network.allow": reaches_more,
    "mcp.wait": larger,
    "mcp.permission_wait": larger,
    "server.direct_calls": higher,
    "server.body": larger,
    "server.requests": higher,
    "server.websockets": higher,
    "lsp.servers": differs,
    "lsp.diagnostics": later_in("off", "errors", "warnings"),
    "lsp.wait": larger,
    "limits.exec": larger,
    "limits.output": larger,
    "limits.memory": larger,
    "limits.processes": higher,
    "limits.file_size": larger,
    "limits.preview": larger,
    "limits.waiting": larger,
    "limits.idle": larger,
    "limits.sessions": higher,
    "agent.calls": higher,
    "agent.tokens": lets_more,
    "agent.repeats": higher,
    "agent.attempts": higher,
    "agent.full": higher,
    "agent.window": lets_more,
    "agent.map": higher,
}
"""Said here in other words than in the settings themselves."""

PROGRAMS = ("alpha", "beta", "gamma", "delta")
said = st.dictionaries(one_of(*VALUES), st.none(), max_size=8).flatmap(
    lambda keys: st.fixed_dictionaries({key: VALUES[key] for key in keys})
)
rules = st.lists(
    st.tuples(one_of("allow", "ask", "deny"), one_of(*PROGRAMS)), max_size=4, unique_by=lambda rule: rule[1]
)


def spell(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {spell(inner)}' for key, inner in value.items())} }}"
    return msgspec.json.encode(value).decode()


def document(values: Mapping[str, Any], rules: list[tuple[str, str]]) -> str:
    lines = [f"{key} = {spell(value)}" for key, value in values.items()]
    lines += [f'[[rule]]\nid = "{program}"\n{verdict} = "{program}"' for verdict, program in rules]
    return "\n".join(lines)


documents = st.builds(document, said, rules)


def loaded(folder: str, **texts: str) -> LoadedSettings:
    places = {"user": "config.toml", "project": "shop/handrail.toml", "managed": "managed.toml"}
    Path(folder, "shop").mkdir(exist_ok=True)
    for layer, text in texts.items():
        Path(folder, places[layer]).write_text(text)
    environ = {"HOME": "/home/ada", "HANDRAIL_STATE_DIR": f"{folder}/state"}
    if "user" in texts:
        environ["HANDRAIL_CONFIG"] = f"{folder}/config.toml"
    return load(environ, {}, f"{folder}/shop", f"{folder}/managed.toml")


def looser_keys(one: LoadedSettings, other: LoadedSettings) -> list[str]:
    values, others = one.settings.flatten(), other.settings.flatten()
    return [key for key in values if LOOSER[key](values[key], others[key])]


def unordered(value: object) -> object:
    return frozenset(value) if isinstance(value, tuple) else value


def test_the_words_of_this_test_are_about_every_setting() -> None:
    assert list(LOOSER) == list(VALUES) == list(list_settings())


@given(documents, documents)
def test_an_untrusted_project_loosens_nothing(user: str, project: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        without = loaded(folder, user=user)
        untrusted = loaded(folder, user=user, project=project)
    assert looser_keys(untrusted, without) == []
    assert [rule for rule in untrusted.rules if rule.layer == "user"] == list(without.rules)
    assert all(rule.verdict != "allow" for rule in untrusted.rules if rule.layer == "project")


@given(documents, documents)
def test_what_is_ignored_is_told_and_what_is_not_ignored_counts(user: str, project: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        untrusted = loaded(folder, user=user, project=project)
        trusted = load(
            {"HOME": "/home/ada", "HANDRAIL_CONFIG": f"{folder}/config.toml"},
            {},
            f"{folder}/shop",
            f"{folder}/managed.toml",
            trusted=True,
        )
    before, after = untrusted.settings.flatten(), trusted.settings.flatten()
    differing = {key for key in before if unordered(before[key]) != unordered(after[key])}
    told = {ignored.value.partition(" = ")[0] for ignored in untrusted.ignored if ignored.until_trusted}
    assert differing <= told
    missing = {rule.id for rule in trusted.rules} - {rule.id for rule in untrusted.rules}
    assert {f'rule {name}: allow "{name}"' for name in missing} <= told


@given(documents, documents, st.booleans())
def test_nothing_is_looser_than_the_managed_file(managed: str, other: str, is_user: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        alone = loaded(folder, managed=managed)
        chosen = loaded(folder, managed=managed, **{"user" if is_user else "project": other})
    assert not set(looser_keys(chosen, alone)) & set(alone.managed)
