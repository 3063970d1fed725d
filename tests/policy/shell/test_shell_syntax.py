"""What is written for bash: nothing in it is left to interpret, and it says what was read."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_commands import odd_commands

from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Script, Unparsed, to_bash

WRITTEN: list[tuple[str, str]] = [
    ("ls", "'ls'"),
    ("a ''", "'a' ''"),
    ('a "it\'s"', r"'a' 'it'\''s'"),
    ("wc -l *.py", "'wc' '-l' './'*'.py'"),
    ("ls src/[!a-c]?x[0-9]", "'ls' 'src/'[!a-c]?'x'[0-9]"),
    ("grep x --include=*.py", "'grep' 'x' '--include=*.py'"),
    ("a<x>y 2>&1|b&&c;d||e", "'a' <'x' >'y' 2>&1 | 'b' && 'c' ; 'd' || 'e'"),
    ("a 1>>'x y' 1>&2\nb &>z", "'a' >>'x y' >&2 ; 'b' &>'z'"),
]


@pytest.mark.parametrize(("text", "written"), WRITTEN)
def test_every_word_is_quoted_but_for_what_is_open_in_it(text: str, written: str) -> None:
    assert to_bash(read(text)) == written


PIECES = (*"a '\"\\*?[]-./~#!$><;|=:ä\n\t", "{}", "@{1}", "2>&1", "&&", "x y", "'b'", '"c"')


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_what_is_written_reads_as_what_it_was_written_from(text: str) -> None:
    check(f"a {text}")


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_with_a_place_in_it(text: str) -> None:
    check(text)


def test_odd_commands_read_the_same_when_written(deep: bool) -> None:
    for text in islice(odd_commands(7), 200_000 if deep else 3_000):
        check(text)


def check(text: str) -> None:
    script = lex(text)
    if isinstance(script, Unparsed):
        assert script.reason
        assert 0 <= script.at <= len(text)
        return
    assert lex(to_bash(script)) == script
    for command in script.commands:
        assert command.words[0].text
        assert not command.words[0].globs
        assert all(word.text[0] not in "-+" and word.globs[0] > 0 for word in command.words if word.globs)


def read(text: str) -> Script:
    script = lex(text)
    assert isinstance(script, Script)
    return script
