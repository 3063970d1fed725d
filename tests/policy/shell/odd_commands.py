"""Commands made by chance: plausible ones with something done to them, and heaps of what makes trouble."""

import random
from collections.abc import Iterator

from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Script

PLAUSIBLE = r"""
git status
git log --oneline -5 -- src/a.py
git diff HEAD~1..HEAD --stat
git show HEAD@{1} stash@{0} HEAD^{tree}
ls -la src tests
cat a.txt b.txt | head -20
grep -rn "foo bar" src --include=*.py
grep -E '^(a|b)+$' x.txt | sort | uniq -c
grep "a\.b\"c\\" x
find . -name '*.py' ! -path './x/*' -type f
find . \( -name a -o -name b \) -print
find . -name \*.md -newer x
wc -l *.py src/*.c
cat my\ file.txt 'other file' "third one"
cd src && ls | wc -l
[ -f x ] && cat x || echo none
test -d "a b" ; pwd
echo a >x 2>&1
echo hi 1>out 2>err
cat <in >>log
make &>all ; tail -5 all
sort <a | uniq >b 2>/dev/null
echo "it's" 'a "b"' c\'d
rg -n 'a|b' --glob '!x' .
sed -n 1,5p a.txt
head -c10 x;tail -n+3 x
diff a b||echo differ
ls [a-c]*.txt x?y
export a=b c=d
printf %s\\n a b
echo "öäü" '漢字'
declare -x a=1
tr a-z A-Z <x
awk '{print $1}' x
stat -c %s,%n a:b=c
true&&false;true
echo one
  two
a
b 2>&1 | c >&2
""".strip().split("\n")

PIECES = (
    *("a", "b", "ls", "echo", "x", "-n", "-", "--", "--x=y", "a.b", "1", "2", "22", "0", "word", "x1"),
    *(
        "./x",
        "a/b",
        "../y",
        "/dev/null",
        "..",
        ".",
        "/x",
        "a=b",
        "x=1",
        "=",
        "a+=1",
        "+",
        "%1",
        "%",
        ",",
        ":",
        "@",
        "^",
    ),
    *(
        "'a b'",
        "''",
        '""',
        '"a"',
        "'",
        '"',
        '"a\\"b"',
        '"\\\\"',
        "'\\'",
        '"\\a"',
        '"\\$x"',
        "'$x'",
        "'`'",
        '"!"',
        "'ä'",
        '"漢"',
    ),
    *(
        "\\",
        "\\ ",
        "\\'",
        '\\"',
        "\\\\",
        "\\a",
        "\\;",
        "\\(",
        "\\)",
        "\\*",
        "\\$",
        "\\|",
        "\\&",
        "\\>",
        "\\<",
        "\\#",
        "\\~",
    ),
    *("\\{", "\\}", "\\[", "\\]", "\\!", "\\=", "\\\n", "\\\t"),
    *("*", "?", "[", "]", "[a]", "[!a]", "[a-z]", "[[", "]]", "[[:x:]]", "**", ".*", "a*", "*.c", "[^", "[]"),
    *("$", "$x", "${x}", "$(a)", "`", "`a`", "$'a'", '"a$"', '"$|"', '"$ "', '"$)"', '"$', '$"a"', "$((1))"),
    *("{", "}", "{}", "{a,b}", "{1..3}", "@{u}", "^{x}", "@{", "@{1.a}", "..", "{x}>", "@{a}..@{b}", "@{a,b}"),
    *("~", "~x", "a~", ":~", "=~", "a~1", "#", "#x", "a#", "a#b", "!", "!!", "!a", "a!"),
    *(
        ">",
        "<",
        ">>",
        "1>",
        "2>",
        "2>>",
        "1>>",
        "&>",
        "&>>",
        "2>&1",
        ">&2",
        "1>&2",
        ">&",
        "<&",
        "<<",
        "<<<",
        "<>",
        ">|",
    ),
    *(">x", "<x", "2>x", "> x", "2>&1x", "3>x", "0<x"),
    *("2>&-", "&>x", ">'a b'", "<(a)", ">(a)", "2 >x", ">2", "> 2>x"),
    *(
        "&&",
        "||",
        ";",
        "|",
        "&",
        "|&",
        ";;",
        ";&",
        ";;&",
        ";&>x",
        "\n",
        ";\n",
        "&&\n",
        "|\n",
        "(",
        ")",
        "()",
        "((",
        "))",
    ),
    *(
        "if",
        "then",
        "fi",
        "for",
        "in",
        "do",
        "done",
        "while",
        "case",
        "esac",
        "time",
        "coproc",
        "function",
        "select",
        "until",
    ),
    *(
        "export",
        "declare",
        "eval",
        "exec",
        "exit",
        "set",
        "alias",
        "local",
        "let",
        "cd",
        "test",
        "[ a ]",
        "read",
        "return",
    ),
    *("a[b", "a[1]=c", "c]", "a[b]", "x[", "d]=e"),
    *(
        "\t",
        "  ",
        "\r",
        "\x0b",
        "\x0c",
        "\x00",
        "\x01",
        "\x7f",
        "\xa0",
        "\u200b",
        "\u202e",
        "\u3000",
        "ä",
        "漢",
        "\ufeff",
    ),
)
FIRST = (
    "a",
    "b",
    "ls",
    "echo",
    "x",
    "export",
    "declare",
    "[",
    "test",
    "./x",
    "a.b",
    "eval",
    "set",
    "'a'",
    '"b"c',
    "\\a",
)
CALM = (
    "a",
    "b",
    "-n",
    "a.b",
    "'a b'",
    '"a"',
    "*",
    "\\ ",
    "2>&1",
    ">x",
    "<x",
    "&&",
    "||",
    ";",
    "|",
    "2",
    "a*",
    ">>y",
    "\n",
)
# Most heaps of all pieces are refused. Those of what can be accepted somewhere come nearest to the border.
NEAR = tuple(
    piece
    for piece in PIECES
    if any(isinstance(lex(text.format(piece)), Script) for text in ("a {}", "a x{}", "a {} a"))
)


def odd_commands(seed: int) -> Iterator[str]:
    """Without end, the same for the same seed."""
    draw = random.Random(seed)
    while True:
        kind = draw.random()
        if kind < 0.3:
            yield changed(draw)
        else:
            yield heap(draw, PIECES if kind < 0.4 else CALM if kind < 0.5 else NEAR)


def changed(draw: random.Random) -> str:
    """One or two plausible commands, with pieces put in, taken out and doubled."""
    text = draw.choice(("", "", " ", " && ", "; ", " | ", "\n")).join(draw.sample(PLAUSIBLE, draw.choice((1, 1, 2))))
    for _ in range(draw.randrange(4)):
        place = draw.randrange(len(text) + 1)
        end = place + draw.choice((0, 0, 1, 3))
        text = (
            text[:place]
            + draw.choice(("", draw.choice(PIECES), draw.choice(CALM), text[place : place + 2]))
            + text[end:]
        )
    return text


def heap(draw: random.Random, pieces: tuple[str, ...]) -> str:
    """A first word and a few pieces, some of them next to each other; now and then one from the others."""
    glue = draw.choice((("", " "), (" ",), ("", " ", " ", " ")))
    text = draw.choice(FIRST) if draw.random() < 0.9 else ""
    for _ in range(draw.randrange(1, 8)):
        text += draw.choice(glue) + draw.choice(pieces if draw.random() < 0.9 else PIECES)
    return text
