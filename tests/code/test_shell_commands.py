"""What the display parser sees in commands outside the provable subset, and where it says that it cannot tell."""

import builtins
import shlex
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.code import shell
from handrail.code.shell import MAX_SCRIPT_BYTES, find_shell_commands
from handrail.protocol.decisions import DisplayedCommand
from handrail.protocol.wire import encode

RM = ("rm", "-rf", "/")

SEEN: list[tuple[str, list[tuple[str, ...]]]] = [
    ('a $x \'b c\' "d $e" "\\$f" g\\ h', [("a", "$x", "b c", "d $e", "$f", "g h")]),
    ("X=1 Y=2 a b", [("a", "b")]),
    ("'r'\"m\" x; r\\m y", [("rm", "x"), ("rm", "y")]),
    ("$'\\x72\\155' $'a\\nb' $'\\u00e4\\q' $'c\\0d' $'\\ud800'", [("rm", "a\nb", "äq", "c", "\ufffd")]),
    ("if a; then b; elif c; then d; else e; fi", [("a",), ("b",), ("c",), ("d",), ("e",)]),
    ("for i in $(a); do b $i; done", [("a",), ("b", "$i")]),
    ("while a; do b; done; until c; do d; done", [("a",), ("b",), ("c",), ("d",)]),
    ("case $x in a) b;; *) c;; esac", [("b",), ("c",)]),
    ("(a; { b; }) & c", [("a",), ("b",), ("c",)]),
    ("f() { a; }; function g { b; }", [("a",), ("b",)]),
    ("a | b |& c && d || ! e", [("a",), ("b",), ("c",), ("d",), ("e",)]),
    ("a $(b `c`) <(d) >(e)", [("a", "$(b `c`)", "<(d)", ">(e)"), ("b", "`c`"), ("c",), ("d",), ("e",)]),
    ("a ${x:-$(b)} $((1 + $(c)))", [("a", "${x:-$(b)}", "$((1 + $(c)))"), ("b",), ("c",)]),
    ('a "$(b "$(c)")"', [("a", '$(b "$(c)")'), ("b", "$(c)"), ("c",)]),
    ("x=$(a); export Y=$(b) Z; unset Y", [("a",), ("export", "Y=$(b)", "Z"), ("b",), ("unset", "Y")]),
    ("[[ -f x ]] && [ -d y ] && a", [("[[", "-f", "x", "]]"), ("[", "-d", "y", "]"), ("a",)]),
    ("cat <<E\n$(rm -rf /)\nE", [("cat",), RM]),
    ("cat <<'E'\n$(rm -rf /)\nE", [("cat",)]),
    ("cat <<E && a\nx\nE\nb", [("cat",), ("a",), ("b",)]),
    ("a <<< $(b)", [("a",), ("b",)]),
    ("# rm x\na", [("a",)]),
    ("time a; coproc b c", [("time", "a"), ("b", "c")]),
]


@pytest.mark.parametrize(("text", "commands"), SEEN)
def test_every_simple_command_is_seen_wherever_it_stands(text: str, commands: list[tuple[str, ...]]) -> None:
    assert [one.words for one in seen(text)] == commands


HIDDEN = (
    *("bash -c 'rm -rf /'", "sh -ec 'a; rm -rf /'", 'sudo zsh -c "rm -rf /"', "eval 'rm -rf /'", "eval rm -rf /"),
    *("eval \"eval 'rm -rf /'\"", "bash -c \"sh -c 'rm -rf /'\" $x"),
    *("x=$(dash -c 'rm -rf /')", "trap 'rm -rf /' EXIT"),
    *("bash <<E\nrm -rf /\nE", "cat <<'E' | sh\nrm -rf /\nE", "sh <<< 'rm -rf /'"),
    *("echo 'rm -rf /' | bash", "/bin/sh<<E\nrm -rf /\nE"),
    *("echo rm -rf / | sudo sh -", "printf 'rm -rf /' | bash -s", "r\\\nm -rf /"),
    *("# a \\\nrm -rf /", "rm \\\n -rf \\\n /"),
    *("echo `a \\`rm -rf /\\``", "$'rm' -rf /", "then rm -rf /", "if rm -rf /"),
    *("a; ) rm -rf /", "{ rm -rf /", "$(rm -rf /", "(rm -rf /"),
    *("find . -exec sh -c 'rm -rf /' \\; $x", "f() { rm -rf /; }; f", "a & rm -rf / &"),
    *("a\nrm -rf /\n", "a && { b || rm -rf /; }"),
    *("echo `a` `rm -rf /`", "echo `a``rm -rf /`", "echo ${x:=`rm -rf /`}", "cat <<E\n`rm -rf /`\nE"),
    *("cat <<-E\n\t$(rm -rf /)\n\tE", "coproc X { rm -rf /; }", "alias x='rm -rf /'"),
    *("echo 'rm -rf /' | sudo -n env A=1 bash", "echo 'rm -rf /' | tee x | sh", "cat <<< 'rm -rf /' | sh"),
    *("bash <(echo 'rm -rf /')", "source <(echo rm -rf /)", "sh < <(echo 'rm -rf /')"),
    *("bash -c \"$(echo 'rm -rf /')\"", "eval $(echo rm -rf /)", "$(echo rm -rf /)", "`echo rm -rf /`"),
    *("x=/; rm -rf $x", 'x="/"; rm -rf "${x}"', "x=rm; $x -rf /", "x='rm -rf /'; $x", "rm -rf ${x:-/}"),
    *('a=(rm -rf /); "${a[@]}"', 'set -- rm -rf /; "$@"', "rm${IFS}-rf$IFS/", "{rm,-rf,/}"),
)


@pytest.mark.parametrize("text", HIDDEN)
def test_no_disguise_hides_a_command(text: str) -> None:
    assert RM in [one.words for one in seen(text)]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("for i in / /etc; do rm -rf $i; done", [("rm", "-rf", "$i"), ("rm", "-rf", "/", "/etc")]),
        ('for i in a b; do rm "$i/x"; done', [("rm", "$i/x"), ("rm", "a/x", "b/x")]),
        ("rm /{bin,etc}", [("rm", "/{bin,etc}"), ("rm", "/bin", "/etc")]),
    ],
)
def test_what_the_text_itself_says_of_its_words_is_told_too(text: str, commands: list[tuple[str, ...]]) -> None:
    assert [one.words for one in seen(text)] == commands


@pytest.mark.parametrize(
    "text",
    [
        "cat <<'E'\n`rm -rf /`\nE",
        "echo 'x `rm -rf /`' $y",
        "echo 'rm -rf /' | grep sh",
        "x=/; echo rm -rf $x",
        "echo 'rm -rf /' > x.txt; sh run.sh $y",
    ],
)
def test_what_is_only_said_is_no_command(text: str) -> None:
    assert RM not in [one.words for one in seen(text)]


WRITES: list[tuple[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]] = [
    ("a $x >b 2>>'c d' <e", [(("a", "$x"), ("b", "c d"))]),
    ("a &>b &>>c >|d >&e <>f", [(("a",), ("b", "c", "d", "e", "f"))]),
    ("a 2>&1 >&2 >&- >$x", [(("a",), ("$x",))]),
    (">a b $c", [(("b", "$c"), ("a",))]),
    ("> a", [((), ("a",))]),
    ("{ a; b; } >c", [((), ("c",)), (("a",), ()), (("b",), ())]),
    ("for i in x; do a; done >b 2>&1", [((), ("b",)), (("a",), ())]),
    ("f() { a; } >b", [((), ("b",)), (("a",), ())]),
    ("cat <<E >a\nx\nE", [(("cat",), ("a",))]),
    ("bash -c 'a >b' >c", [(("bash", "-c", "a >b"), ("c",)), (("a",), ("b",))]),
    ("export A=1 >b", [(("export", "A=1"), ("b",))]),
]


@pytest.mark.parametrize(("text", "commands"), WRITES)
def test_files_that_are_written_to_are_told(text: str, commands: list[tuple[tuple[str, ...], tuple[str, ...]]]) -> None:
    assert [(one.words, one.writes) for one in seen(text)] == commands


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("X=1 a $b >c; d", ["X=1 a $b >c", "d"]),
        ("cat <<E >a\nx\nE", ["cat <<E >a"]),
        ("{ a; } >c 2>d", [">c 2>d", "a"]),
    ],
)
def test_the_text_is_as_it_stands_there(text: str, shown: list[str]) -> None:
    assert [one.text for one in seen(text)] == shown


@pytest.mark.parametrize(
    "text",
    [
        ":(){ :|:& };:",
        ":() { : | : & } ; :",
        "bomb() { bomb & bomb; }; bomb",
        "function f { f | f; }",
        "f() { if a; then f & fi; }",
        "f() { g & }; g() { f; }; f",
        "bash -c ':(){ :|:& };:'",
        "f() { (f) & }",
    ],
)
def test_a_function_that_starts_itself_again_and_again_is_told(text: str) -> None:
    assert any(one.forks_itself for one in seen(text))


@pytest.mark.parametrize(
    "text", ["f() { f; }", "f() { a | b & }; f | f &", "f() { g & }; g() { a; }", "f | f &", "f() { a; }; f & f"]
)
def test_other_functions_are_not(text: str) -> None:
    assert not any(one.forks_itself for one in seen(text))


def nested(text: str, depth: int) -> str:
    """A command in a string in a command …, none of which can be read without a parser."""
    for _ in range(depth):
        text = f"b $x; eval {shlex.quote(text)}"
    return text


TOO_MUCH: Mapping[str, str] = {
    "bytes": "a $x" + " " * MAX_SCRIPT_BYTES,
    "NUL": "a $x\0b",
    "commands": "a $x;" * 2_001,
    "pipes": "a $x|" * 1_001,
    "heredocs": "<<a " * 1_001,
    "nodes": "$a" * 60_000,
    "text in text": "a $(" * 20_000,
    "depth": nested("a $x", 7),
    "texts": ";".join(f"eval 'a{number} $x'" for number in range(101)),
    "commands of several texts": ";".join(f"a{n} $x" for n in range(1_500))
    + "; eval '"
    + ";".join(f"b{n} $x" for n in range(1_500))
    + "'",
    "commands in one": "find $x " + " ".join(f"-exec a{n} \\;" for n in range(150)),
}


@pytest.mark.parametrize("text", TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_is_too_much_is_not_told_in_part(text: str) -> None:
    assert find_shell_commands(text) is None


GARBAGE = (
    *("(", ")", "$(", "`", "'", '"', "{ ", "}", "[[ "),
    *("((", "<(", "<<a\n", "${a:-", "case a in ", "if ", "f()", "x=(", "\\"),
    *("\r", "\n", "\x0b", "\x7f", "\u202e", "\ud800", "a\r\n", "'$(", '"$(', "&"),
    *(";", "|", "!", "<", ">", "*)", "&&(", "a;<", "))*"),
)


@pytest.mark.parametrize("piece", GARBAGE)
def test_garbage_neither_hangs_nor_breaks_anything(piece: str, deep: bool) -> None:
    much = 100_000 if deep else 30_000
    for text in (piece, piece * 100, piece * (much // len(piece))):
        check(text)


@given(st.lists(st.sampled_from((*GARBAGE, "a ", "b", " ", "rm ", "eval ", "sh -c ", "$x")), max_size=20).map("".join))
def test_any_heap_of_pieces_is_seen_or_not(text: str) -> None:
    check(text)


@given(st.text(max_size=60))
def test_any_text_is_seen_or_not(text: str) -> None:
    check(text)


def test_a_few_strings_in_one_another_are_looked_into() -> None:
    assert ("a", "$x") in [one.words for one in seen(nested("a $x", 5))]


def test_without_the_parser_nobody_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "tree_sitter_bash":
            raise ImportError(name)
        return real(name, *rest)

    shell._bash.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    assert find_shell_commands("a $x") is None


def check(text: str) -> None:
    found = find_shell_commands(text)
    encode(found)  # it goes into the journal
    for one in found or ():
        assert one.words or one.writes


def seen(text: str) -> tuple[DisplayedCommand, ...]:
    found = find_shell_commands(text)
    assert found is not None
    return found
