"""Options are parsed as the program parses them, and unlisted ones are refused."""

import getopt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.programs.support import words

from handrail.policy.programs.options import list_path_uses, parse_args, parse_path_uses
from handrail.policy.programs.spec import ParsedArgs, PathUse, ProgramSpec
from handrail.policy.shell.syntax import Word

TOOL = ProgramSpec(
    name="tool",
    flags="abc",
    values="nk",
    attached="I",
    long_flags="all quiet color=",
    long_values="lines",
    paths={"-f": "read", "--file": "read", "--out": "write"},
    numbers=True,
)
PLAIN = ProgramSpec(name="plain", flags="ab", values="n")
ONE = ProgramSpec(name="one", flags="c", most=1)
NONE = ProgramSpec(name="none", operands=None)
SEARCH = ProgramSpec(name="search", values="e", first="text", unless_options=frozenset({"-e"}))
COPY = ProgramSpec(
    name="copy", effect="write", operands="read", last="write", flags="t", unless_options=frozenset({"-t"})
)


@pytest.mark.parametrize(
    ("given_words", "options", "operands"),
    [
        ("-a x", [("-a", None)], ["x"]),
        ("-abn 5 x", [("-a", None), ("-b", None), ("-n", "5")], ["x"]),
        ("-abn5 x", [("-a", None), ("-b", None), ("-n", "5")], ["x"]),
        ("-n -5 x", [("-n", "-5")], ["x"]),
        ("-n -- x", [("-n", "--")], ["x"]),
        ("x -a y", [("-a", None)], ["x", "y"]),
        ("-- -a --all", [], ["-a", "--all"]),
        ("- -a", [("-a", None)], ["-"]),
        ("-12 x", [("-NUM", "12")], ["x"]),
        ("-a3 x", [("-a", None), ("-3", None)], ["x"]),
        ("-I x", [("-I", None)], ["x"]),
        ("-aIsec x", [("-a", None), ("-I", "sec")], ["x"]),
        ("--all x", [("--all", None)], ["x"]),
        ("--color x", [("--color", None)], ["x"]),
        ("--color=never x", [("--color", "never")], ["x"]),
        ("--lines 5 x", [("--lines", "5")], ["x"]),
        ("--lines=5 x", [("--lines", "5")], ["x"]),
        ("--lines= x", [("--lines", "")], ["x"]),
        ("--file x y", [("--file", "x")], ["y"]),
        ("-fx y", [("-f", "x")], ["y"]),
    ],
)
def test_words_are_sorted_as_gnu_programs_sort_them(
    given_words: str, options: list[tuple[str, str | None]], operands: list[str]
) -> None:
    parsed = parse_args(TOOL, words(*given_words.split()))
    assert isinstance(parsed, ParsedArgs), parsed
    assert (list(parsed.options), list(parsed.operands)) == (options, operands)


@pytest.mark.parametrize(
    ("given_words", "reason"),
    [
        ("-z", "tool's option -z is not among the read-only options"),
        ("-abz", "tool's option -z is not among the read-only options"),
        ("-12x", "tool's option -x is not among the read-only options"),
        ("x -z", "tool's option -z is not among the read-only options"),
        ("--unknown", "tool's option --unknown is not among the read-only options"),
        ("--al", "tool's option --al is not among the read-only options"),
        ("--all=5", "tool's option --all= is not among the read-only options"),
        ("-n", "tool's option -n lacks its value"),
        ("--lines", "tool's option --lines lacks its value"),
        ("-f=x", "-f=x names another file for some programs than for others"),
    ],
)
def test_what_the_table_does_not_list_is_refused_with_the_reason(given_words: str, reason: str) -> None:
    assert parse_args(TOOL, words(*given_words.split())) == reason


def test_numbers_are_options_only_where_the_table_says_so() -> None:
    assert parse_args(PLAIN, words("-5")) == "plain's option -5 is not among the read-only options"
    assert parse_args(TOOL, words("-٥")) == "tool's option -٥ is not among the read-only options"


def test_an_option_of_a_program_that_writes_is_not_said_to_be_none_that_reads() -> None:
    assert parse_args(COPY, words("-x")) == "copy's option -x is not among the known options"


@pytest.mark.parametrize(
    ("given_words", "reason"),
    [
        ([Word("-a*", (2,))], "-a* is a pattern that may become any option"),
        ([Word("--all*", (5,))], "--all* is a pattern that may become any option"),
        ([Word("-n"), Word("a*", (1,))], "a* is a pattern where tool's option -n has its value"),
    ],
)
def test_a_pattern_is_refused_anywhere_but_as_an_operand(given_words: list[Word], reason: str) -> None:
    assert parse_args(TOOL, tuple(given_words)) == reason


def test_there_are_no_more_operands_than_the_table_says() -> None:
    assert isinstance(parse_args(ONE, words("-c", "a")), ParsedArgs)
    assert parse_args(ONE, words("a", "b")) == "one only reads with at most 1 operand"
    assert parse_args(ONE, (Word("a*", (1,)),)) == "one only reads with at most 1 operand"
    assert parse_args(NONE, words("a")) == "none only reads without operands such as a"


def test_operands_and_path_options_are_uses() -> None:
    assert parse_path_uses(TOOL, words("-f", "in", "--out=out", "-n", "5", "a", "-")) == (
        PathUse("in", "read"),
        PathUse("out", "write"),
        PathUse("a", "read"),
        PathUse("-", "read"),
    )


def test_the_first_operand_is_text_unless_an_option_takes_its_place() -> None:
    assert parse_path_uses(SEARCH, words("x", "a", "b")) == (PathUse("a", "read"), PathUse("b", "read"))
    assert parse_path_uses(SEARCH, words("-e", "x", "a")) == (PathUse("a", "read"),)


def test_the_last_of_several_operands_is_the_destination_unless_an_option_names_it() -> None:
    assert parse_path_uses(COPY, words("a", "b")) == (PathUse("a", "read"), PathUse("b", "write"))
    assert parse_path_uses(COPY, words("a")) == (PathUse("a", "read"),)
    assert parse_path_uses(COPY, words("-t", "a", "b")) == (PathUse("a", "read"), PathUse("b", "read"))


@pytest.mark.parametrize(
    ("table", "given_words", "expected"),
    [
        (SEARCH, [Word("x*", (1,)), Word("a")], (PathUse("x*", "read", is_glob=True), PathUse("a", "read"))),
        (COPY, [Word("a*", (1,))], (PathUse("a*", "read", is_glob=True), PathUse("a*", "write", is_glob=True))),
        (COPY, [Word("a*", (1,)), Word("b")], (PathUse("a*", "read", is_glob=True), PathUse("b", "write"))),
        (
            COPY,
            [Word("b"), Word("a*", (1,))],
            (PathUse("b", "read"), PathUse("a*", "read", is_glob=True), PathUse("a*", "write", is_glob=True)),
        ),
    ],
)
def test_a_pattern_is_all_that_its_names_may_be(
    table: ProgramSpec, given_words: list[Word], expected: tuple[PathUse, ...]
) -> None:
    assert parse_path_uses(table, tuple(given_words)) == expected


def test_a_pattern_that_is_only_text_reads_the_names_it_stands_for() -> None:
    table = ProgramSpec(name="say", operands="text")
    parsed = ParsedArgs((), ("a*", "b"), (0,))
    assert list_path_uses(table, parsed) == (PathUse("a*", "read", is_glob=True),)


def test_a_table_refuses_what_its_own_function_refuses() -> None:
    table = ProgramSpec(name="say", operands="text", reject=lambda parsed: "no" if "x" in parsed.operands else None)
    assert parse_args(table, words("x")) == "no"
    assert isinstance(parse_args(table, words("y")), ParsedArgs)


WORDS = st.sampled_from(
    "-a -b -ab -n -n5 -abn -na x y - -- -x -ax --all --quiet --lines --lines=3 --lines= --all=1 --zzz -5 -nk 7".split()  # noqa: SIM905
)


@given(st.lists(WORDS, max_size=6))
def test_the_sorting_agrees_with_another_reader_of_gnu_options(texts: list[str]) -> None:
    table = ProgramSpec(name="tool", flags="ab", values="nk", long_flags="all quiet", long_values="lines")
    try:
        options, operands = getopt.gnu_getopt(texts, "abn:k:", ["all", "quiet", "lines="])
    except getopt.GetoptError:
        assert isinstance(parse_args(table, words(*texts)), str)
        return
    parsed = parse_args(table, words(*texts))
    assert isinstance(parsed, ParsedArgs), parsed
    assert [(name, value or "") for name, value in parsed.options] == options
    assert list(parsed.operands) == operands
