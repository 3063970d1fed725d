"""Every table has examples, and they come out as the table says."""

from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.programs.support import TABLES, command, list_example_faults

from handrail.policy.programs.classes import VERSIONS
from handrail.policy.programs.registry import (
    ProgramRegistry,
    build_registry,
    classify,
    find_example_refusal,
    load_registry,
)
from handrail.policy.programs.spec import ProgramClass, ProgramSpec
from handrail.policy.shell.syntax import SimpleCommand, Word

MODULES = ("data", "files", "git", "http", "system", "text", "write")
LIST = ProgramSpec(name="list", flags="a", match=("list -a",), no_match=("list -b",))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_has_examples_and_they_come_out(table: ProgramSpec) -> None:
    assert table.match
    assert table.no_match
    assert list_example_faults(table, build_registry()) == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_part_of_the_registry_for_a_program_has_all_that_is_about_it(table: ProgramSpec) -> None:
    for name in (table.name, *table.also):
        words = tuple(name.split())
        assert load_registry(words[0]).tables[words] is table
    assert list_example_faults(table, load_registry(table.name.split()[0])) == []


def test_no_table_is_left_out_of_the_registry() -> None:
    tables = [table for module in MODULES for table in import_module(f"handrail.policy.programs.{module}").TABLES]
    assert {id(table) for table in (*tables, *VERSIONS)} == {id(table) for table in TABLES}


def test_a_program_is_in_one_table_only() -> None:
    with pytest.raises(ValueError, match="list is in two tables"):
        ProgramRegistry((LIST, ProgramSpec(name="other", also=("list",))), ())
    group = ProgramClass(rule="exec.wrapper", reason="runs another program", programs=frozenset({"list"}))
    with pytest.raises(ValueError, match="list is in two tables"):
        ProgramRegistry((), (group, group))


def test_a_name_may_have_a_table_and_a_class_besides() -> None:
    group = ProgramClass(rule="exec.wrapper", reason="runs another program", programs=frozenset({"list"}))
    found = ProgramRegistry((LIST,), (group,)).find(("list",))
    assert found is not None
    assert (found.table, found.group) == (LIST, group)


def test_an_example_that_comes_out_wrong_is_told_with_its_table() -> None:
    wrong = ProgramSpec(
        name="list", flags="a", match=("list -b", "list >$x", "list; list", "cat"), no_match=("list -a",)
    )
    told = list_example_faults(wrong, ProgramRegistry((wrong,), ()))
    assert told == [
        "the table of list must accept 'list -b', but list's option -b is not among the read-only options",
        "the table of list must accept 'list >$x', but "
        f"{find_example_refusal(wrong, ProgramRegistry((wrong,), ()), 'list >$x')}",
        "the table of list must accept 'list; list', but it is more than one command",
        "the table of list must accept 'cat', but it is not about it",
        "the table of list must not accept 'list -a'",
    ]


def test_an_example_that_another_table_accepts_is_wrong() -> None:
    (found,) = list_example_faults(ProgramSpec(name="cat", match=("cat x",)), load_registry("cat"))
    assert found == "the table of cat must accept 'cat x', but it is not about it"


PROVEN = [text for table in TABLES if table.effect == "proven" for text in table.match]
# What these get is text, whatever it looks like, or behind it an unknown option is an operand.
TAKE_ANYTHING = (
    "echo",
    "true",
    "false",
    ":",
    "expr",
    "printf",
    "unzip",
    "exit",
    "test",
    "[",
    "command",
    "git rev-parse",
)


@given(st.sampled_from(PROVEN), st.sampled_from(["--no-such-option", "--no-such-option=x", "-\x7f", "-£"]))
def test_an_unknown_option_makes_a_proven_command_unproven(text: str, option: str) -> None:
    words = command(text).words
    if "--" in [word.text for word in words] or text.startswith(TAKE_ANYTHING):
        return
    # Right behind the program it is nobody's value.
    longest = 3 if words[0].text in {"git", "yq"} else 1
    for place in range(1, longest + 1):
        if words[place - 1 : place] and all(not word.text.startswith("-") for word in words[1:place]):
            changed = (*words[:place], Word(option), *words[place:])
            assert classify(SimpleCommand(changed)).effect != "proven", changed


def test_an_example_is_read_as_its_table_says() -> None:
    for table in TABLES:
        for text in table.match:
            assert classify(command(text), loopback=True).effect == table.effect, text
