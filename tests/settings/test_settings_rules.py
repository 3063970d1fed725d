"""Rules in settings files: how they are read, and what is said about those that cannot be used."""

from pathlib import Path

import pytest

from handrail.policy.config import Rule
from handrail.settings import LoadedSettings, SettingsError, load
from handrail.settings.load import check_tools
from handrail.settings.toml_file import find_table_lines


def load_text(tmp_path: Path, text: str) -> LoadedSettings:
    file = tmp_path / "config.toml"
    file.write_text(text)
    return load({"HOME": "/nowhere", "HANDRAIL_CONFIG": str(file)}, {}, None, str(tmp_path / "managed.toml"))


def problems_of(tmp_path: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load_text(tmp_path, text)
    assert str(tmp_path / "config.toml") in str(caught.value)
    return caught.value.problems


def test_a_rule_has_all_that_is_written_and_where_it_stands(tmp_path: Path) -> None:
    text = """
    mode = "auto"
    [[rule]]
    id = "tests"
    allow = "pytest"                          # still sandboxed
    because = "tests run often and can be undone"
    match = ["pytest -q", "pytest tests/cart"]
    no_match = ["python -m pytest"]
    [[ rule ]]
    id = "generated"
    ask = "src/api/**"
    tool = "write"
    [[rule]]
    id = "make"
    allow = "make"
    any_args = false
    [search]
    ignore = []
    """
    loaded = load_text(tmp_path, text)
    assert loaded.rules == (
        Rule(
            id="tests",
            verdict="allow",
            pattern="pytest",
            because="tests run often and can be undone",
            match=("pytest -q", "pytest tests/cart"),
            no_match=("python -m pytest",),
            source="user:3",
        ),
        Rule(id="generated", verdict="confirm", pattern="src/api/**", tool="write", source="user:9"),
        Rule(id="make", verdict="allow", pattern="make", source="user:13"),
    )


WRONG = [
    ('[[rule]]\nallow = "ls"', ["line 1: the rule has no id"]),
    ('[[rule]]\nid = "a"', ["line 1: the rule says nothing; allowed: one of allow, ask, deny"]),
    (
        '[[rule]]\nid = "a"\nallow = "ls"\ndeny = "ls"\nask = "ls"',
        ["line 1: the rule says allow and ask and deny; allowed: one of allow, ask, deny"],
    ),
    (
        '[[rule]]\nid = "a"\nallow = "ls"\nbecuase = ""',
        ["line 4: becuase is not a key of a rule; did you mean because?"],
    ),
    (
        '[[rule]]\nid = "a"\nallow = "ls"\nxyz = 1',
        [
            "line 4: xyz is not a key of a rule; there are id, allow, ask, deny, tool, because, match, no_match, "
            "any_args"
        ],
    ),
    (
        '[[rule]]\nid = "a"\nallow = "ls"\n[rule.mach]\nx = 1',
        ["line 4: mach is not a key of a rule; did you mean match?"],
    ),
    (
        '[[rule]]\nid = "a"\nallow = 1',
        ["line 3: allow is 1; allowed: one non-empty string; a second pattern needs a second rule"],
    ),
    (
        '[[rule]]\nid = "a"\nallow = ""',
        ["line 3: allow is ''; allowed: one non-empty string; a second pattern needs a second rule"],
    ),
    (
        '[[rule]]\nid = "a"\ndeny = ["ls"]',
        ["line 3: deny is ['ls']; allowed: one non-empty string; a second pattern needs a second rule"],
    ),
    ('[[rule]]\nid = "a"\ndeny = "ls"\nmatch = "ls"', ["line 4: match is 'ls'; allowed: a list of strings"]),
    ('[[rule]]\nid = "a"\ndeny = "ls"\nno_match = [1]', ["line 4: no_match is [1]; allowed: a list of strings"]),
    ('[[rule]]\nid = "a"\ndeny = "ls"\nany_args = "yes"', ["line 4: any_args is 'yes'; allowed: true or false"]),
    ('[[rule]]\nid = "a"\ndeny = "ls"\ntool = ""', ["line 4: tool is ''; allowed: the name of a tool"]),
    (
        '[[rule]]\nid = "fs.secret"\ndeny = "ls"',
        ["line 2: id is 'fs.secret'; allowed: letters, digits, - and _, at most 64, beginning with a letter or digit"],
    ),
    (
        '[[rule]]\nid = "a"\ndeny = "ls"\n[[rule]]\nid = "a"\nask = "make"',
        ["line 5: another rule has the id 'a'"],
    ),
    ('rule = "ls"', ["rule is 'ls'; allowed: tables, each written [[rule]]"]),
    ('[rule]\nid = "a"', ["rule is {'id': 'a'}; allowed: tables, each written [[rule]]"]),
    ("rule = [1]", ["rule is [1]; allowed: tables, each written [[rule]]"]),
    ('[[rules]]\nid = "a"', ["line 1: rules is not a setting; did you mean [[rule]]?"]),
    (
        'rule = [\n  { id = "a", deny = 1 },\n  { deny = "ls" },\n]',
        [
            "line 1: deny is 1; allowed: one non-empty string; a second pattern needs a second rule",
            "line 1: the rule has no id",
        ],
    ),
    (
        '[["rule"]]\nid = "a"\ndeny = 1\n[["rule"]]\nid = 5\ndeny = "x"',
        [
            "rule 1: deny is 1; allowed: one non-empty string; a second pattern needs a second rule",
            "rule 2: id is 5; allowed: letters, digits, - and _, at most 64, beginning with a letter or digit",
        ],
    ),
    (
        'mood = 1\n[[rule]]\nid = "a"\n[[rule]]\ndeny = 1\nalow = "x"',
        [
            "line 1: mood is not a setting; did you mean mode?",
            "line 2: the rule says nothing; allowed: one of allow, ask, deny",
            "line 5: deny is 1; allowed: one non-empty string; a second pattern needs a second rule",
            "line 6: alow is not a key of a rule; did you mean allow?",
            "line 4: the rule has no id",
        ],
    ),
    (
        '[[rule]]\nid = "a"\ndeny = "ls"\n"\\u001b[2J" = 1',
        ["line 1: '\\x1b[2J' is not a key of a rule; there are id, "],
    ),
]


@pytest.mark.parametrize(("text", "problems"), WRONG)
def test_everything_that_is_wrong_with_rules_is_told_with_its_line(
    tmp_path: Path, text: str, problems: list[str]
) -> None:
    found = problems_of(tmp_path, text)
    assert len(found) == len(problems)
    for one, expected in zip(found, problems, strict=True):
        assert one.startswith(expected)


def test_of_very_many_wrong_parts_the_first_are_told(tmp_path: Path) -> None:
    parts = "".join(f"key{number} = 1\n" for number in range(50_000))
    found = problems_of(tmp_path, f'[[rule]]\nid = "a"\ndeny = "ls"\n{parts}')
    assert (len(found), found[-1]) == (21, "and more")


def test_no_file_has_more_rules_than_can_be_looked_through(tmp_path: Path) -> None:
    rules = "".join(f'[[rule]]\nid = "r{number}"\ndeny = "p{number}"\n' for number in range(201))
    assert problems_of(tmp_path, rules) == ("there are 201 rules; allowed: at most 200",)


def test_rules_of_all_layers_count_the_managed_ones_first(tmp_path: Path) -> None:
    for name, text in (("managed", "shutdown"), ("config", "make"), ("shop/handrail", "npm")):
        path = tmp_path / f"{name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'[[rule]]\nid = "no-{text}"\ndeny = "{text}"\n')
    loaded = load(
        {"HOME": "/nowhere", "HANDRAIL_CONFIG": str(tmp_path / "config.toml")},
        {},
        str(tmp_path / "shop"),
        str(tmp_path / "managed.toml"),
        {"rule": [{"id": "no-curl", "deny": "curl"}]},
    )
    assert [(rule.pattern, rule.source) for rule in loaded.rules] == [
        ("shutdown", "managed:1"),
        ("make", "user:1"),
        ("npm", "project:1"),
        ("curl", "session"),
    ]


@pytest.mark.parametrize("text", ["'''\n[[rule]]\n'''", '"""x"""'])
def test_no_line_is_claimed_where_a_long_string_could_mislead(text: str) -> None:
    assert find_table_lines(f"[[rule]]\nid = {text}", "rule", 1) == [{}]


KNOWN = ("read", "write", "edit", "deploy")


@pytest.mark.parametrize("tool", ["write", "deploy", "exec", "process", "*", "mcp__server__tool"])
def test_a_rule_may_be_about_a_tool_that_is_here_or_comes_from_another_server(tmp_path: Path, tool: str) -> None:
    check_tools(load_text(tmp_path, f'[[rule]]\nid = "a"\ndeny = "x"\ntool = "{tool}"'), KNOWN)


@pytest.mark.parametrize(("tool", "near"), [("wrtie", "write"), ("Edit", "edit"), ("deplyo", "deploy")])
def test_a_misspelt_tool_of_a_rule_is_an_error(tmp_path: Path, tool: str, near: str) -> None:
    loaded = load_text(tmp_path, f'\n[[rule]]\nid = "a"\ndeny = "x"\ntool = "{tool}"')
    with pytest.raises(SettingsError) as caught:
        check_tools(loaded, KNOWN)
    told = f"rule a (user:2) is about the tool '{tool}'; did you mean {near}?"
    assert caught.value.problems == (told,)


def test_a_rule_about_a_tool_like_none_is_told_which_there_are(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, '[[rule]]\nid = "a"\ndeny = "x"\ntool = "frobnicate"')
    with pytest.raises(SettingsError, match="the tools are \\*, deploy, edit, exec, process, read, write"):
        check_tools(loaded, KNOWN)
