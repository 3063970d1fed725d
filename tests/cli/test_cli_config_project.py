"""handrail config with a project and with rules."""

import tomllib
from pathlib import Path

import jsonschema
import pytest

from handrail.cli.commands.config import build_config_data, render_config
from handrail.settings import load

PROJECT = """\
mode = "plan"
[bulk]
changed = 900
[[rule]]
id = "push"
ask = "git push"
[[rule]]
id = "tests"
allow = "pytest"
"""
RULES = '[[rule]]\nid = "docs"\ndeny = "docs/**"\ntool = "write"\nbecause = "generated"\n'


def test_config_shows_what_the_project_says_and_what_of_it_is_ignored(here, workspace: Path) -> None:
    (workspace / "handrail.toml").write_text(PROJECT)
    done = here("config")
    rows = [row.split() for row in done.out.splitlines()]
    assert ["mode", "project", "file", '"plan"'] in rows
    assert ["push", "ask", "exec", "git", "push", "project:4"] in rows
    assert not any(row[:1] == ["tests"] for row in rows)
    assert done.err.splitlines()[:3] == [
        "handrail.toml line 3: bulk.changed = 900 is ignored until you trust this project: handrail trust",
        'handrail.toml line 7: rule tests: allow "pytest" is ignored until you trust this project: handrail trust',
        f"project file: {workspace}/handrail.toml (not trusted)",
    ]


def test_a_rule_about_a_tool_that_is_not_here_is_told_by_config_and_doctor(here, config) -> None:
    config('[[rule]]\nid = "docs"\ntool = "wirte"\ndeny = "docs/"\n[[rule]]\nid = "all"\ntool = "*"\ndeny = "keys/"\n')
    remark = "rule docs (user:1) is about the tool 'wirte'; did you mean write?"
    assert here("config").err.splitlines()[0] == remark
    assert here("config", "--json").json["notes"] == [remark]
    assert remark in here("doctor").out


def test_config_looks_at_the_workspace_that_is_named(here, workspace: Path, tmp_path: Path) -> None:
    (workspace / "handrail.toml").write_text(PROJECT)
    assert here("config", "--json", cwd=tmp_path).json["project"] is None
    found = here("config", "--workspace", str(workspace), "--json", cwd=tmp_path).json
    assert found["project"] | {"digest": ""} == {
        "path": f"{workspace}/handrail.toml",
        "workspace": str(workspace),
        "digest": "",
        "trusted": False,
        "remark": "",
    }


def test_config_of_a_trusted_project_says_so(here, workspace: Path) -> None:
    (workspace / "handrail.toml").write_text(PROJECT)
    here("trust", "--yes")
    done = here("config")
    assert f"project file: {workspace}/handrail.toml (trusted)" in done.err
    assert "is ignored" not in done.err


def test_config_json_has_rules_and_what_is_ignored(here, config, workspace: Path) -> None:
    config(RULES)
    (workspace / "handrail.toml").write_text(PROJECT)
    found = here("config", "--json").json
    assert [(rule["id"], rule["verdict"], rule["source"]) for rule in found["rules"]] == [
        ("docs", "deny", "user:1"),
        ("push", "confirm", "project:4"),
    ]
    assert [(ignored["line"], ignored["said"]) for ignored in found["ignored"]] == [
        (3, "bulk.changed = 900"),
        (7, 'rule tests: allow "pytest"'),
    ]
    assert len(found["notes"]) == 2


def test_config_works_where_no_workspace_can_be(here, environment: dict[str, str], workspace: Path) -> None:
    home = Path(environment["HOME"])
    (home / "handrail.toml").write_text("broken")
    assert here("config", cwd=home).code == 0
    assert here("config", cwd=Path("/")).code == 0
    assert here("config", "--workspace", str(home)).code == 2


def test_config_shows_a_managed_file(tmp_path: Path) -> None:
    managed = tmp_path / "managed.toml"
    managed.write_text('mode = "plan"\n[[rule]]\nid = "no-net"\ndeny = "curl"\n')
    loaded = load({"HOME": "/nowhere"}, {"mode": "auto"}, None, str(managed))
    rows = [row.split() for row in render_config(loaded, {}).splitlines()]
    assert ["mode", "managed", "file", '"plan"'] in rows
    assert ["no-net", "deny", "exec", "curl", "managed:2"] in rows
    assert build_config_data(loaded, {})["notes"][0].startswith('mode = "auto" (flag) is ignored: ')


SCHEMA = [
    (RULES, True),
    ('[[rule]]\nid = "a"\nallow = "ls"\nmatch = ["ls -l"]\nno_match = []\nany_args = true\n', True),
    ('[[rule]]\nid = "a"\n', False),
    ('[[rule]]\nallow = "ls"\n', False),
    ('[[rule]]\nid = "a"\nallow = "ls"\ndeny = "ls"\n', False),
    ('[[rule]]\nid = "a.b"\nallow = "ls"\n', False),
    ('[[rule]]\nid = "a"\nallow = "ls"\nalow = 1\n', False),
    ('[rule]\nid = "a"\nallow = "ls"\n', False),
]


@pytest.mark.parametrize(("text", "valid"), SCHEMA)
def test_the_schema_says_of_rules_what_the_settings_say(here, config, text: str, valid: bool) -> None:
    schema = here("config", "--schema").json
    jsonschema.Draft202012Validator.check_schema(schema)
    assert jsonschema.Draft202012Validator(schema).is_valid(tomllib.loads(text)) is valid
    config(text)
    assert (here("config").code == 0) is valid


def test_the_schema_explains_every_part_of_a_rule(here) -> None:
    rule = here("config", "--schema").json["properties"]["rule"]["items"]
    assert all(part["description"] for part in rule["properties"].values())


def test_tools_and_doctor_know_the_project(here, workspace: Path) -> None:
    (workspace / "handrail.toml").write_text('[tools]\ndisable = ["grep"]\nenable = ["delete"]\n')
    assert "grep" not in [tool["name"] for tool in here("tools", "--json").json]
    rows = here("doctor", "--json").json["rows"]
    assert [row["fix"] for row in rows if "is ignored until" in row["text"]] == ["handrail trust"]
