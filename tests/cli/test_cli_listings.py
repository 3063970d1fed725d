"""tools, schema, config: what is printed, and in which form."""

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from handrail.protocol.schema import WIRE_TYPES, build_wire_schemas


def test_tools_is_a_table_of_what_is_offered(here) -> None:
    head, *rows = here("tools").out.splitlines()
    assert head.split() == ["tool", "version", "permissions", "description"]
    assert [row.split()[:3] for row in rows][:2] == [["read", "1.0.0", "fs.read"], ["write", "1.0.0", "fs.write"]]
    assert "Write a whole file" in rows[1]


def test_tools_json_is_the_list_of_descriptions_as_it_is(here) -> None:
    tools = here("tools", "--json").json
    schema = build_wire_schemas()["tool_description"]
    for tool in tools:
        jsonschema.validate(tool, schema)
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
    assert {"read", "write", "ls"} <= {tool["name"] for tool in tools}


def test_tools_come_in_the_two_vendors_forms(here) -> None:
    openai = here("tools", "--openai").json[0]
    anthropic = here("tools", "--anthropic").json[0]
    assert (openai["type"], openai["function"]["name"]) == ("function", "read")
    assert openai["function"]["parameters"] == anthropic["input_schema"]
    assert anthropic["input_schema"]["additionalProperties"] is False


def test_tools_come_as_an_mcp_list(here) -> None:
    tools = here("tools", "--mcp").json
    assert [tool["name"] for tool in tools] == ["read", "write", "edit", "find", "grep", "ls", "exec", "process"]
    assert tools[0]["inputSchema"] == here("tools", "--json").json[0]["inputSchema"]
    assert tools[0]["outputSchema"]["type"] == "object"
    assert tools[0]["annotations"]["readOnlyHint"] is True


def test_the_guide_says_which_of_the_offered_tools_to_take_for_what(here, config) -> None:
    assert "| Locate files by name | `find(pattern, path=., maxResults=1000 files, exclude=[])` |" in (
        here("tools", "--guide").out
    )
    config('[tools]\nenable = ["delete"]\ndisable = ["find"]\n')
    text = here("tools", "--guide").out
    assert "| Delete a file | `delete(path)` (off by default) |" in text
    assert "find" not in text


def test_only_one_form_at_a_time(here) -> None:
    done = here("tools", "--json", "--openai")
    assert (done.code, done.out) == (2, "")
    assert "not allowed with argument --json" in done.err


def test_tools_follow_the_settings_and_leave_no_trace(here, config, state: Path) -> None:
    config('[tools]\ndeny = ["fs.write"]\ndisable = ["ls"]\n')
    names = [tool["name"] for tool in here("tools", "--json").json]
    assert "read" in names
    assert not {"write", "ls"} & set(names)
    assert not state.exists()


def test_schema_prints_one_object_with_every_type_and_every_tool(here) -> None:
    done = here("schema")
    assert (done.code, done.err) == (0, "")
    assert done.json["schema"] == "handrail.schema/1"
    assert set(done.json["types"]) == set(WIRE_TYPES)
    assert {"read", "write", "ls"} <= set(done.json["tools"])
    for schema in (*done.json["types"].values(), *done.json["tools"].values()):
        jsonschema.Draft202012Validator.check_schema(schema)


def test_schema_out_writes_a_schema_and_a_valid_sample_of_every_type(here, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    done = here("schema", "--out", str(out))
    assert done.code == 0
    for name in WIRE_TYPES:
        schema = json.loads((out / f"{name}.schema.json").read_text())
        sample = json.loads((out / "samples" / f"{name}.json").read_text())
        jsonschema.validate(sample, schema)
    written = [path for path in out.rglob("*") if path.is_file()]
    assert done.out == f"{len(written)} files written to {out}\n"
    read = json.loads((out / "tools" / "read.schema.json").read_text())
    jsonschema.validate({"path": "a"}, read)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"file_path": "a"}, read)


def test_schema_out_says_what_is_in_the_way(here, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = here("schema", "--out", str(tmp_path / "file"))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {tmp_path}/file/")
    assert "Name another folder with --out.\n" in done.err


def test_config_shows_every_setting_with_its_source(here, config, state: Path) -> None:
    path = config('mode = "auto"\n[results]\ncharacters = 5000\n')
    done = here("config", HANDRAIL_MODE="plan")
    rows = {row.split()[0]: row.split(maxsplit=2)[1:] for row in done.out.splitlines()}
    assert rows["setting"] == ["source", "value"]
    assert done.out.splitlines()[0] == "setting                   source                     value"
    assert rows["mode"] == ["environment", 'HANDRAIL_MODE  "plan"']
    assert rows["results.characters"] == ["user", "file                  5000"]
    assert rows["read.images"] == ["default", "true"]
    assert done.err == f"user file: {path}\nstate folder: {state}\n"
    assert not state.exists()


def test_config_tells_on_stderr_what_was_ignored(here) -> None:
    done = here("config", HANDRAIL_MODE="full")
    assert (done.code, done.err.splitlines()[0][:30]) == (0, "HANDRAIL_MODE=full is ignored:")


def test_config_json_has_values_sources_and_notes(here, state: Path) -> None:
    found = here("config", "--json", HANDRAIL_MODE="full").json
    assert found["schema"] == "handrail.config/1"
    assert found["settings"]["mode"] == {"value": "ask", "source": "default"}
    assert found["stateFolder"] == str(state)
    assert len(found["notes"]) == 1


def test_config_that_cannot_be_used_is_exit_2_with_every_problem(here, config) -> None:
    config('mood = "ask"\n[read]\nimages = 3\n')
    done = here("config")
    assert (done.code, done.out) == (2, "")
    assert "mood is not a setting; did you mean mode?" in done.err
    assert "read.images is 3; allowed: true or false" in done.err


def test_config_explains_a_setting(here, config) -> None:
    path = config('mode = "auto"\n\n[limits]\nexec = "90s"\n')
    assert here("config", "limits.exec").out.splitlines() == [
        'limits.exec = "90s"',
        "The time limit of a command if the call sets none.",
        f"source   user file {path}, line 4",
        'default  "120s"',
        'allowed  a time from "100 ms" to "10 min", such as "120s" or "1.5 min", or a whole number of seconds',
    ]
    [found] = here("config", "mode", "--json", HANDRAIL_MODE="plan").json["settings"]
    assert (found["value"], found["default"], found["line"]) == ("plan", "ask", None)
    assert found["source"] == "environment HANDRAIL_MODE"


def test_config_explains_why_a_value_of_the_setting_is_ignored(here) -> None:
    assert here("config", "mode", HANDRAIL_MODE="full").err.startswith("HANDRAIL_MODE=full is ignored:")
    assert here("config", "limits.exec", HANDRAIL_MODE="full").err == ""


def test_config_explains_a_whole_section(here) -> None:
    shown = here("config", "undo").out
    assert shown.startswith("undo.days = 30\n")
    keys = [one["key"] for one in here("config", "limits", "--json").json["settings"]]
    assert keys[:2] == ["limits.exec", "limits.output"]


def test_config_of_an_unknown_setting_names_the_nearest(here) -> None:
    done = here("config", "limits.exce")
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: limits.exce is not a setting; did you mean limits.exec?\nnext: handrail config\n"


def test_config_names_the_problems_of_every_file_with_their_lines(here, config, workspace: Path) -> None:
    path = config('mood = "ask"\n')
    (workspace / "handrail.toml").write_text('\nmode = "careless"\n')
    for words in ([], ["mode"]):
        done = here("config", *words)
        assert (done.code, done.out) == (2, "")
        assert f"{path} cannot be used:\n  line 1: mood is not a setting; did you mean mode?\n" in done.err
        assert f"{workspace}/handrail.toml cannot be used:\n  line 2: mode is 'careless'; allowed: plan," in done.err


FILES = [
    ('mode = "auto"\n[paths]\nwritable = ["~/data", "/srv"]\n[events]\njsonl = ".tasklogs"\n', True),
    ('mode = "careless"\n', False),
    ('[paths]\nwritable = ["relative"]\n', False),
    ('[events]\njsonl = "../up"\n', False),
    ("unknown = 1\n", False),
]


@pytest.mark.parametrize(("text", "valid"), FILES)
def test_the_schema_of_the_settings_says_what_the_settings_say(here, config, text: str, valid: bool) -> None:
    schema = here("config", "--schema").json
    jsonschema.Draft202012Validator.check_schema(schema)
    assert jsonschema.Draft202012Validator(schema).is_valid(tomllib.loads(text)) is valid
    config(text)
    assert (here("config").code == 0) is valid


def test_the_schema_of_the_settings_explains_every_setting(here) -> None:
    schema = here("config", "--schema").json
    assert schema["properties"]["mode"]["description"].startswith("How much runs without approval")
    assert "\\A" not in json.dumps(schema)
