"""What the lexer accepts and how it reads it, and what it refuses and why."""

import pytest

from handrail.policy.shell.lexer import MAX_COMMANDS, MAX_PARTS, MAX_SCRIPT_BYTES, lex
from handrail.policy.shell.syntax import Redirection, Script, SimpleCommand, Unparsed, Word

LITERAL: list[tuple[str, list[str]]] = [
    ("ls", ["ls"]),
    ("  git \t status\n", ["git", "status"]),
    ("ls -la ./src ../x /etc", ["ls", "-la", "./src", "../x", "/etc"]),
    ("a A9_./,:=+@%^!-", ["a", "A9_./,:=+@%^!-"]),
    ("a 'b c' \"d e\"", ["a", "b c", "d e"]),
    ("a '' \"\"", ["a", "", ""]),
    ("a b'c'\"d\"e", ["a", "bcde"]),
    ("'a' b", ["a", "b"]),
    ("a 'it'\\''s'", ["a", "it's"]),
    ('a "it\'s" \'say "x"\'', ["a", "it's", 'say "x"']),
    ("a '$x `y` \\ !' \"!\"", ["a", "$x `y` \\ !", "!"]),
    (r'a "b\.c" "\"" "\\" "\$x" "\`" "\\\"" "\a\\"', ["a", r"b\.c", '"', "\\", "$x", "`", '\\"', "\\a\\"]),
    (
        r"find . \( -name a -o -name b \) ! -x \;",
        ["find", ".", "(", "-name", "a", "-o", "-name", "b", ")", "!", "-x", ";"],
    ),
    (r"a b\ c \* \$ \\ \' \~ \# \{ \a", ["a", "b c", "*", "$", "\\", "'", "~", "#", "{", "a"]),
    (r'a "b$" "(a$|b$)" "$ x" $ x$ y', ["a", "b$", "(a$|b$)", "$ x", "$", "x$", "y"]),
    ("a b$", ["a", "b$"]),
    ("[ -f x ]", ["[", "-f", "x", "]"]),
    ("a [ ] x[ ]y x[y", ["a", "[", "]", "x[", "]y", "x[y"]),
    (
        "a HEAD~1 HEAD^~ b~ a#b c=#d e:#f @{1}~2 x#~",
        ["a", "HEAD~1", "HEAD^~", "b~", "a#b", "c=#d", "e:#f", "@{1}~2", "x#~"],
    ),
    ("a @{u}..@{1.day.ago} HEAD^{tree} {} -I{}", ["a", "@{u}..@{1.day.ago}", "HEAD^{tree}", "{}", "-I{}"]),
    ("a if then time x=1 in", ["a", "if", "then", "time", "x=1", "in"]),
    ("a 'ä漢🙂é' \"ü\"x", ["a", "ä漢🙂é", "üx"]),
    ("a 'b\n\tc' \"d\ne\"", ["a", "b\n\tc", "d\ne"]),
    ("a --include=*.py -g*.c -[ab] +*", ["a", "--include=*.py", "-g*.c", "-[ab]", "+*"]),
    ("a '*' \"?\" '[a]' .'*' \\*.c", ["a", "*", "?", "[a]", ".*", "*.c"]),
    ("a 2 22 0", ["a", "2", "22", "0"]),
    (": x", [":", "x"]),
    ("./my\\ tool x", ["./my tool", "x"]),
]


@pytest.mark.parametrize(("text", "words"), LITERAL)
def test_words_are_what_the_program_gets(text: str, words: list[str]) -> None:
    assert lex(text) == Script((command(*words),))


PATTERNS: list[tuple[str, Word]] = [
    ("src/*.py", Word("src/*.py", (4,))),
    ("a?c*", Word("a?c*", (1, 3))),
    ("a[0-9]b", Word("a[0-9]b", (1, 5))),
    ("a[!b]", Word("a[!b]", (1, 4))),
    ("a[^b]", Word("a[^b]", (1, 4))),
    ("*.py", Word("./*.py", (2,))),
    ("?", Word("./?", (2,))),
    ("[ab]*", Word("./[ab]*", (2, 5, 6))),
    ("'a b'/*'*'", Word("a b/**", (4,))),
    ("a\\**", Word("a**", (2,))),
    ("./*", Word("./*", (2,))),
    ("../*", Word("../*", (3,))),
    (".github/*/x", Word(".github/*/x", (8,))),
    ("src/**/*.py", Word("src/**/*.py", (4, 5, 7))),
    ("/etc/*", Word("/etc/*", (5,))),
    ("a*[", Word("a*[", (1,))),
    ("]a*", Word("]a*", (2,))),
    ("[a]]", Word("./[a]]", (2, 4))),
    ("a*..", Word("a*..", (1,))),
    ("../../a*", Word("../../a*", (7,))),
]


@pytest.mark.parametrize(("text", "word"), PATTERNS)
def test_patterns_say_where_they_are_open_and_never_begin_with_one(text: str, word: Word) -> None:
    assert lex(f"ls {text}") == Script((SimpleCommand((Word("ls"), word)),))


REDIRECTIONS: list[tuple[str, list[str], list[Redirection]]] = [
    ("a >x", ["a"], [Redirection(">", Word("x"))]),
    ("a> x", ["a"], [Redirection(">", Word("x"))]),
    ("a 1>x", ["a"], [Redirection(">", Word("x"))]),
    ("a>>x", ["a"], [Redirection(">>", Word("x"))]),
    ("a 1>>'x y'", ["a"], [Redirection(">>", Word("x y"))]),
    ("a 2>/dev/null", ["a"], [Redirection("2>", Word("/dev/null"))]),
    ("a 2>>\tx", ["a"], [Redirection("2>>", Word("x"))]),
    ("a&>x", ["a"], [Redirection("&>", Word("x"))]),
    ("a &>> x", ["a"], [Redirection("&>>", Word("x"))]),
    ("a<x>y", ["a"], [Redirection("<", Word("x")), Redirection(">", Word("y"))]),
    ("a >x 2>&1", ["a"], [Redirection(">", Word("x")), Redirection("2>&1")]),
    ("a 2>&1>x", ["a"], [Redirection("2>&1"), Redirection(">", Word("x"))]),
    ("a >&2", ["a"], [Redirection(">&2")]),
    ("a 1>&2 b", ["a", "b"], [Redirection(">&2")]),
    (">x a b", ["a", "b"], [Redirection(">", Word("x"))]),
    ("a 2>x", ["a"], [Redirection("2>", Word("x"))]),
    ("a 2 >x", ["a", "2"], [Redirection(">", Word("x"))]),
    ("a b2>x", ["a", "b2"], [Redirection(">", Word("x"))]),
    ("a '2'>x", ["a", "2"], [Redirection(">", Word("x"))]),
    ("a \\2>x", ["a", "2"], [Redirection(">", Word("x"))]),
    ("a 2&>x", ["a", "2"], [Redirection("&>", Word("x"))]),
    ("a >2", ["a"], [Redirection(">", Word("2"))]),
    ("a >'*'", ["a"], [Redirection(">", Word("*"))]),
    ("a >-", ["a"], [Redirection(">", Word("-"))]),
]


@pytest.mark.parametrize(("text", "words", "redirections"), REDIRECTIONS)
def test_redirections_are_read_in_their_order(text: str, words: list[str], redirections: list[Redirection]) -> None:
    assert lex(text) == Script((command(*words, redirections=tuple(redirections)),))


JOINED: list[tuple[str, tuple[str, ...], str]] = [
    ("a;b", (";",), "ab"),
    ("a ; b;", (";",), "ab"),
    ("a;\n", (), "a"),
    ("a&&b||c", ("&&", "||"), "abc"),
    ("a|b | c", ("|", "|"), "abc"),
    ("a\nb", (";",), "ab"),
    ("a\n\n \t\n b ;\n c", (";", ";"), "abc"),
    ("a &&\n b |\n\n c ||\nd", ("&&", "|", "||"), "abcd"),
    ("a 2>&1|b", ("|",), "ab"),
    ("a>x&&b", ("&&",), "ab"),
    ("a; &>x b", (";",), "ab"),
    ("a&&&>x b||&>y c", ("&&", "||"), "abc"),
]


@pytest.mark.parametrize(("text", "joins", "programs"), JOINED)
def test_commands_are_joined(text: str, joins: tuple[str, ...], programs: str) -> None:
    script = lex(text)
    assert isinstance(script, Script)
    assert (script.joins, "".join(one.words[0].text for one in script.commands)) == (joins, programs)


VARIABLE, COMMAND, GROUP = "a variable", "a command substitution", "a subshell"
BRACES, HOME, COMMENT, BACKGROUND, JOIN = "braces", "home folder", "a comment", "(&)", "unusual way (|)"
OPEN, PROGRAM, RESERVED, ENDS = "never closed", "plain name of a program", "keyword of the shell", "ends before"
INPUT, OUTPUT, FILE, SIGN = "unusual way (<)", "unusual way (>)", "not one file", "not plain text"
BACKSLASH, HIDDEN, UP, BRACKETS, SET = "a backslash", "hidden files", "goes up", "uses [ ]", "sets a variable"
SEMICOLON = "a ; without a command before it, or the ;; or ;& of a case statement"
REFUSED: list[tuple[str, str, int]] = [
    ("", "is empty", 0),
    (" \n\t ", "is empty", 0),
    ("a $x", VARIABLE, 2),
    ("a b$x", VARIABLE, 3),
    ('a "b $x"', VARIABLE, 5),
    ("a $'x'", VARIABLE, 2),
    ("a b$;", VARIABLE, 3),
    ("a b$|c", VARIABLE, 3),
    ('a $"x"', VARIABLE, 2),
    ('a "$$"', VARIABLE, 3),
    ('a "$(b)"', VARIABLE, 3),
    ('a "$[1]"', VARIABLE, 3),
    ("a >$x", VARIABLE, 3),
    ("a `b`", COMMAND, 2),
    ('a "`b`"', COMMAND, 3),
    ("(a)", GROUP, 0),
    ("a <(b)", GROUP, 3),
    ("a() b", GROUP, 1),
    ("a )", GROUP, 2),
    ("a {b,c}", BRACES, 2),
    ("a b{1..3}", BRACES, 3),
    ("a @{b,c}", BRACES, 3),
    ("a @{b..c}", BRACES, 3),
    ("a }", BRACES, 2),
    ("{ a; }", BRACES, 0),
    ("a ~", HOME, 2),
    ("a ~/x", HOME, 2),
    ("a x=~/y", HOME, 4),
    ("a x:~", HOME, 4),
    ("a >~/x", HOME, 3),
    ("a # b", COMMENT, 2),
    ("# b", COMMENT, 0),
    ("a ''#", COMMENT, 4),
    ("a &", BACKGROUND, 2),
    ("a & b", BACKGROUND, 2),
    ("a >&x", BACKGROUND, 3),
    ("a 2>&1x", BACKGROUND, 4),
    ("a 2>&1-", BACKGROUND, 4),
    ("a 2>&-", BACKGROUND, 4),
    ("a 2>& 1", BACKGROUND, 4),
    ("a >&1", BACKGROUND, 3),
    ("a <&0", BACKGROUND, 3),
    ("a |& b", JOIN, 2),
    ("a >|x", JOIN, 3),
    ("| a", JOIN, 0),
    ("a ||| b", JOIN, 4),
    ("a\n| b", JOIN, 2),
    ("a;;b", SEMICOLON, 1),
    ("a;&>x b", SEMICOLON, 1),
    ("a; ;b", SEMICOLON, 3),
    (";", SEMICOLON, 0),
    ("a <<x", INPUT, 3),
    ("a <<<x", INPUT, 3),
    ("a 0<x", INPUT, 3),
    ("a <>x", OUTPUT, 3),
    ("a 3>x", OUTPUT, 3),
    ("a 22>x", OUTPUT, 4),
    ("a 2>2>x", OUTPUT, 5),
    ("a > 2>x", OUTPUT, 5),
    (">x", "names no program", 0),
    ("a; >x", "names no program", 3),
    ("a >", ENDS, 3),
    ("a &&", ENDS, 4),
    ("a |", ENDS, 3),
    ("a > \n x", "line that ends", 4),
    ("a 'b", OPEN, 2),
    ('a "b', OPEN, 2),
    ("a b'", OPEN, 3),
    ("a \\", BACKSLASH, 2),
    ("a \\\n b", BACKSLASH, 2),
    ('a "\\\n"', BACKSLASH, 3),
    ('a "\\ä"', BACKSLASH, 3),
    ("x=1 a", SET, 0),
    ("'x'=1", SET, 0),
    (">y x=1", SET, 0),
    ("a | time b", RESERVED, 4),
    ("a; if b", RESERVED, 3),
    ("a | 'while'", RESERVED, 4),
    ("! a", PROGRAM, 0),
    ("[[ a ]]", PROGRAM, 0),
    ("'' a", PROGRAM, 0),
    ("%1", PROGRAM, 0),
    ("'%1'", PROGRAM, 0),
    ("-a", PROGRAM, 0),
    ("a* b", PROGRAM, 0),
    ("*", PROGRAM, 0),
    ("{}", PROGRAM, 0),
    ("'ä'", PROGRAM, 0),
    ("a >*", FILE, 3),
    ("a <x?", FILE, 3),
    ("a >''", FILE, 3),
    ("a </dev/tcp/x/80", "network connection", 3),
    ("a >'/dev/ud'p/x/80", "network connection", 3),
    ("cat .e*", HIDDEN, 4),
    ("cat .*", HIDDEN, 4),
    ("cat src/.?", HIDDEN, 4),
    ("cat '.'[a-z]x", HIDDEN, 4),
    ("ls */../x", UP, 3),
    ("ls a/*/..", UP, 3),
    ("ls [[:alpha:]]", BRACKETS, 12),
    ("ls []a]", BRACKETS, 4),
    ("ls ['a']", BRACKETS, 7),
    ("ls [[a]", BRACKETS, 4),
    ("ls [a/b]", BRACKETS, 7),
    ("a ä", SIGN, 2),
    ("a\xa0b", SIGN, 1),
    ("a '\xa0'", SIGN, 3),
    ("a\rb", SIGN, 1),
    ("a b\r", SIGN, 3),
    ("a '\r'", SIGN, 3),
    ("a\x0bb", SIGN, 1),
    ("a\x0cb", SIGN, 1),
    ("a\x00b", SIGN, 1),
    ("a '\x00'", SIGN, 3),
    ("a '\x1b[0m'", SIGN, 3),
    ("a \x7f", SIGN, 2),
    ("a '\x85'", SIGN, 3),
    ("a '\u202e'", SIGN, 3),
    ("a '\u200b'", SIGN, 3),
    ("a '\u2028'", SIGN, 3),
    ("a '\ud800'", SIGN, 3),
    ("a '\uffff'", SIGN, 3),
    ("a 'x\u3164'", SIGN, 4),
    ("a 'x\U000e0041'", SIGN, 4),
]


@pytest.mark.parametrize(("text", "reason", "at"), REFUSED)
def test_all_else_is_refused_with_the_reason_and_the_place(text: str, reason: str, at: int) -> None:
    outside = lex(text)
    assert isinstance(outside, Unparsed)
    assert reason in outside.reason
    assert (outside.at, outside.too_large) == (at, False)


TOO_LARGE = {
    "bytes": "a " + "b" * (MAX_SCRIPT_BYTES - 1),
    "bytes that are not letters": f"a '{'ä' * (MAX_SCRIPT_BYTES // 2)}'",
    "words": "a " * (MAX_PARTS + 1),
    "words after a join": "a " * (MAX_PARTS - 1) + "; b",
    "parts of words": "a" + " b'c'd" * 150,
    "parts of one word": "a " + "'b'" * 101,
    "patterns": "a" + " b*" * 250,
    "redirections": "a" + " >b" * 201,
    "commands": "a;" * (MAX_COMMANDS + 1),
}


@pytest.mark.parametrize("text", TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_goes_beyond_a_limit_says_so(text: str) -> None:
    outside = lex(text)
    assert isinstance(outside, Unparsed)
    assert outside.too_large


@pytest.mark.parametrize(
    "text",
    [
        "a " + "b" * (MAX_SCRIPT_BYTES - 2),
        f"a '{'ä' * (MAX_SCRIPT_BYTES // 2 - 2)}'",
        "a " * MAX_PARTS,
        "a;" * MAX_COMMANDS,
        "a " + "'b'" * 100,
        f"a {'x' * 500}'{'y' * 5000}'",
    ],
)
def test_what_reaches_a_limit_is_read(text: str) -> None:
    assert isinstance(lex(text), Script)


def command(*words: str, redirections: tuple[Redirection, ...] = ()) -> SimpleCommand:
    return SimpleCommand(tuple(Word(word) for word in words), redirections)
