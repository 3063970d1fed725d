"""What happens to a user file that cannot be used."""

import os
from pathlib import Path

import pytest

from handrail.settings import LoadedSettings, SettingsError, load

MEBIBYTE = 1024 * 1024


def load_file(file: Path) -> LoadedSettings:
    return load({"HOME": "/nowhere", "HANDRAIL_CONFIG": str(file)}, {})


def problems_of(tmp_path: Path, content: str | bytes) -> tuple[str, ...]:
    file = tmp_path / "config.toml"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(SettingsError) as caught:
        load_file(file)
    assert str(file) in str(caught.value)
    return caught.value.problems


def next_descriptor() -> int:
    descriptor = os.open(os.devnull, os.O_RDONLY)
    os.close(descriptor)
    return descriptor


UNKNOWN = [
    ('moode = "ask"', "line 1: moode is not a setting; did you mean mode?"),
    ("\n[tools]\nenabel = []", "line 3: tools.enabel is not a setting; did you mean tools.enable?"),
    ('[mcp.server.a]\ncommand = "a"', "line 1: mcp.server is not a setting; did you mean mcp.servers?"),
    ('[mcpServers.a]\ncommand = "a"', "line 1: mcpServers is not a setting; did you mean mcp.servers?"),
    ('[mcp_servers.a]\ncommand = "a"', "line 1: mcp_servers is not a setting; did you mean mcp.servers?"),
    (
        "[mcp.github]\nargs = []",
        "line 1: mcp.github is not a setting; there are mcp.wait, mcp.permission_wait, mcp.servers",
    ),
    ("[tool]\nenable = []", "line 1: tool is not a setting; did you mean tools?"),
    ("[tool.x]\nenable = []", "line 1: tool is not a setting; did you mean tools?"),
    ("ignore = []", "line 1: ignore is not a setting; did you mean search.ignore?"),
    ("[tools]\nimages = true", "line 2: tools.images is not a setting; did you mean read.images?"),
    (
        "results.batch-characters = 1",
        "line 1: results.batch-characters is not a setting; did you mean results.batch_characters?",
    ),
    ("disabel = []", "line 1: disabel is not a setting; did you mean tools.disable?"),
    ("imagse = true", "line 1: imagse is not a setting; did you mean read.images?"),
    ('"tools.enable" = []', "'tools.enable' is not a setting; did you mean tools.enable?"),
    (
        "[results]\nzzz = 1",
        "line 2: results.zzz is not a setting; there are results.characters, results.batch_characters",
    ),
    ('"\\u001b[2J" = 1', "'\\x1b[2J' is not a setting; there are mode, "),
    ("[[mode]]\nx = 1", "line 1: mode is [{'x': 1}]; allowed: plan, ask, auto or full"),
    ("tools = 5", "line 1: tools is 5; allowed: a table, written [tools]"),
    ("[[tools]]\nenable = []", "line 1: tools is [{'enable': []}]; allowed: a table, written [tools]"),
]


@pytest.mark.parametrize(("text", "problem"), UNKNOWN)
def test_an_unknown_key_is_refused_with_the_nearest_name(tmp_path: Path, text: str, problem: str) -> None:
    (found,) = problems_of(tmp_path, text)
    assert found.startswith(problem)


WRONG = [
    ("mode", '"yolo"', "'yolo'", "plan, ask, auto or full"),
    ("mode", "1", "1", "plan, ask, auto or full"),
    ("tools.enable", '"todo"', "'todo'", "a list of tool names"),
    ("tools.enable", "[1]", "[1]", "a list of tool names"),
    ("tools.deny", '["fs.raed"]', "['fs.raed']", "a list of fs.read, fs.write,"),
    ("tools.deny", "0x" + "f" * 9000, "a value too large to show", "a list of fs.read, fs.write,"),
    ("tools.folders", '["tools"]', "['tools']", "a list of folders, each absolute or starting with ~/"),
    ("read.images", "1", "1", "true or false"),
    ("read.images", "{ x = 1 }", "{'x': 1}", "true or false"),
    ("results.characters", "999", "999", "a whole number from 1000"),
    ("results.characters", "true", "True", "a whole number from 1000"),
    ("results.characters", "3e4", "30000.0", "a whole number from 1000"),
    ("results.characters", "100_000_001", "100000001", "a whole number from 1000"),
    ("results.batch_characters", "0x" + "f" * 9000, "a value too large to show", "a whole number from 1000"),
    ("journal.durability", '"fire"', "'fire'", "crash or power"),
    ("events.jsonl", '""', "''", "a folder relative to the workspace, without .."),
    ("events.jsonl", '"/var/log"', "'/var/log'", "a folder relative to the workspace, without .."),
    ("events.jsonl", '"~/log"', "'~/log'", "a folder relative to the workspace, without .."),
    ("events.jsonl", '".."', "'..'", "a folder relative to the workspace, without .."),
    ("events.jsonl", '"a/../../b"', "'a/../../b'", "a folder relative to the workspace, without .."),
    ("paths.read_only", '["data"]', "['data']", "a list of folders, each absolute or starting with ~/"),
    ("paths.writable", '["~ada/x"]', "['~ada/x']", "a list of folders, each absolute or starting with ~/"),
    ("paths.writable", '["/a\\u0000b"]', "['/a\\x00b']", "a list of folders, each absolute or starting with ~/"),
    ("search.ignore", "1979-05-27", "datetime.date(1979, 5, 27)", "a list of patterns"),
]


@pytest.mark.parametrize(("key", "value", "shown", "allowed"), WRONG)
def test_a_wrong_value_is_refused_with_what_is_allowed(
    tmp_path: Path, key: str, value: str, shown: str, allowed: str
) -> None:
    (found,) = problems_of(tmp_path, f"# first line\n{key} = {value}\n")
    assert found.startswith(f"line 2: {key} is {shown}; allowed: {allowed}")


def test_who_denies_a_tool_of_another_server_is_told_how_it_is_taken_away(tmp_path: Path) -> None:
    (found,) = problems_of(tmp_path, 'tools.deny = ["mcp__github__*"]\n')
    assert found.endswith("git.write; tools.disable removes tools of other servers")


@pytest.mark.parametrize("folder", [".tasklogs", "logs/tasks", "..logs", "logs/a..b/"])
def test_a_folder_inside_the_workspace_is_allowed_for_events(tmp_path: Path, folder: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'events.jsonl = "{folder}"')
    assert load_file(file).settings.events.jsonl == folder


def test_all_problems_of_a_file_are_reported_at_once_with_the_next_step(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('mode = "yolo"\n\n[results]\ncharacters = 10\n[tools]\nenabel = ["todo"]\n')
    with pytest.raises(SettingsError) as caught:
        load_file(file)
    assert str(caught.value) == (
        f"The settings file {file} cannot be used:\n"
        "  line 1: mode is 'yolo'; allowed: plan, ask, auto or full\n"
        "  line 4: results.characters is 10; allowed: a whole number from 1000 to 100000000\n"
        "  line 6: tools.enabel is not a setting; did you mean tools.enable?\n"
        "Nothing was run. Correct the file, or set HANDRAIL_CONFIG to another one."
    )


def test_a_long_value_is_cut_to_eighty_characters(tmp_path: Path) -> None:
    (found,) = problems_of(tmp_path, f'mode = "{"x" * 500}"')
    assert found == f"line 1: mode is '{'x' * 78}…; allowed: plan, ask, auto or full"


def test_of_very_many_problems_the_first_are_told_and_the_rest_counted(tmp_path: Path) -> None:
    problems = problems_of(tmp_path, "".join(f"key{number} = 1\n" for number in range(60_000)))
    assert len(problems) == 21
    assert problems[-1] == "and 59,980 more"


def test_no_line_is_claimed_where_a_long_string_could_mislead(tmp_path: Path) -> None:
    text = "[search]\nignore = ['''\nmodus = 1\n''']\n[extra]\nmodus = 1\n"
    assert problems_of(tmp_path, text)[0].startswith("extra is not a setting; ")


BROKEN = [
    ("mode = \n", "line 1, column 8: not TOML: Invalid value"),
    ("[tools]\nenable = [\n", "line 3, column 1: not TOML: "),
    ("[tools]\nenable = ['a'", "line 2, column 14: not TOML: "),
    ("a = 1\na = 2\n", "line 2, column 6: not TOML: Cannot overwrite a value"),
    ("[a]\r\n[a]\r\n", "line 2, column 3: not TOML: Cannot declare ('a',) twice"),
    ("a = " + "9" * 5000, "not TOML: Exceeds the limit"),
    ("a = " + "[" * 100_000, "its values are nested too deeply"),
    ("\na" + ".a" * 200_000 + " = 1", "line 2: a name of more than 32 parts"),
    ("[a" + ' . "\\"b"' * 40_000 + "]", "line 1: a name of more than 32 parts"),
    ("x = { " + "'a b'." * 100_000 + "c = 1 }", "line 1: a name of more than 32 parts"),
    (b"mode = 'ask'\n# caf\xe9\n", "line 2: byte 0xe9 is not UTF-8"),
    (b"\xff\xfem\x00", "line 1: byte 0xff is not UTF-8"),
    (b"#" * (MEBIBYTE + 1), "it is larger than 1 MiB"),
]


@pytest.mark.parametrize(("content", "problem"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_file_is_refused_with_its_place(tmp_path: Path, content: str | bytes, problem: str) -> None:
    (found,) = problems_of(tmp_path, content)
    assert found.startswith(problem)
    assert len(found) < 140


@pytest.mark.parametrize("filler", ["# a.b\n", "a", "# \"'", "#" + " ." * 50, "#\n", "# 'a' "])
def test_a_file_of_exactly_one_mebibyte_is_judged_in_good_time(tmp_path: Path, filler: str) -> None:
    file = tmp_path / "config.toml"
    content = "#" + filler * (MEBIBYTE // len(filler))
    file.write_text(content[:MEBIBYTE])
    assert load_file(file).settings.mode == "ask"


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".config/handrail/config.toml").mkdir(parents=True)
    with pytest.raises(SettingsError, match="it is not a regular file"):
        load({"HOME": str(tmp_path)}, {})


def test_a_refused_file_is_closed_again(tmp_path: Path) -> None:
    before = next_descriptor()
    with pytest.raises(SettingsError):
        load_file(tmp_path)
    assert next_descriptor() == before


def test_a_pipe_in_place_of_the_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SettingsError, match="it is not a regular file"):
        load_file(tmp_path / "pipe")


def test_a_missing_file_is_refused_when_it_was_asked_for_by_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"missing\.toml cannot be used:\n  it cannot be read: No such file"):
        load_file(tmp_path / "missing.toml")


@pytest.mark.parametrize("target", ["config.toml", "gone.toml"])
def test_a_link_that_leads_nowhere_is_not_taken_for_a_missing_file(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "handrail"
    folder.mkdir()
    (folder / "config.toml").symlink_to(target)
    with pytest.raises(SettingsError, match="it cannot be read: "):
        load({"HOME": "/nowhere", "XDG_CONFIG_HOME": str(tmp_path)}, {})


def test_a_file_in_place_of_a_parent_folder_is_not_taken_for_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "handrail").write_text("")
    with pytest.raises(SettingsError, match="it cannot be read: Not a directory"):
        load({"HOME": "/nowhere", "XDG_CONFIG_HOME": str(tmp_path)}, {})


def test_a_link_to_a_good_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "real.toml").write_text('mode = "plan"')
    (tmp_path / "link.toml").symlink_to("real.toml")
    assert load_file(tmp_path / "link.toml").settings.mode == "plan"


def test_a_path_that_could_mislead_a_terminal_is_escaped() -> None:
    with pytest.raises(SettingsError) as caught:
        load({"HANDRAIL_CONFIG": "/tmp/\x1b[2J\udcff\x00"}, {})
    assert str(caught.value).split("\n")[0].isprintable()
    assert caught.value.problems == ("it cannot be read: embedded null byte",)
