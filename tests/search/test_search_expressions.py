"""Regular expressions mean what they mean to ripgrep, or they are refused."""

import unicodedata
from itertools import chain
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.protocol.errors import ToolError
from handrail.workspace.search.engine import Pattern
from handrail.workspace.search.expression import Expression
from handrail.workspace.search.regex.characters import is_doubtful

from .conftest import SOME, Both

CHARACTERS = [*"abcksAKéÉſKσςßẞ1_- ½²😀\t.", "\u0301", "\r"]
ATOMS = [*"abcksAKéÉſKσςßẞ1_- ½²😀.", "\u0301"]
ESCAPES = [
    r"\w", r"\d", r"\s", r"\W", r"\D", r"\S", r"\b", r"\B", "^", "$", r"\<", r"\>", ".", r"\pL", r"\p{Lu}", r"\x41",
    r"\t", r"\.", r"\PL", r"\b{start}", r"\u00e9", r"\x{3c3}",
]  # fmt: skip
MEMBERS = [
    "a", "b", "a-c", "A-C", r"\w", r"\d", r"\s", r"\W", r"\S", "é", "[:alpha:]", "[:^upper:]", "[b]", "[^a]", "_", "-",
    "α-ω", r"\-", r"\]", "&&a", "--b", "~~[ab]", ".", r"\x{e9}", "[:foo:]",
]  # fmt: skip
GROUPS = ["(%s)", "(?:%s)", "(?i:%s)", "(?P<n>%s)", "(?s:%s)", "(?U:%s)", "(?i)%s"]
COUNTS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,3}?", "{2,}", "{ 1 }"]


class Maker:
    """Expressions and lines by chance."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def expression(self, depth: int = 2) -> str:
        ways = self._random.choice([1, 1, 1, 2, 3])
        return "|".join("".join(self._repeated(depth) for _ in range(self._length())) for _ in range(ways))

    def lines(self) -> bytes:
        data = b"".join(self._line() for _ in range(40))
        if self._random.random() < 0.4:
            data = bytes(byte for byte in data if byte < 128)
        return data.rstrip(b"\r\n") if self._random.random() < 0.5 else data

    def _length(self) -> int:
        return 0 if self._random.random() < 0.05 else self._random.randint(1, 3)

    def _repeated(self, depth: int) -> str:
        return self._atom(depth) + (self._random.choice(COUNTS) if self._random.random() < 0.35 else "")

    def _atom(self, depth: int) -> str:
        chance = self._random.random()
        if chance < 0.45 or depth == 0:
            return self._random.choice(ATOMS)
        if chance < 0.6:
            return self._random.choice(ESCAPES)
        if chance < 0.75:
            members = "".join(self._random.choices(MEMBERS, k=self._random.randint(1, 3)))
            return f"[{self._random.choice(['', '^', ''])}{members}]"
        return self._random.choice(GROUPS) % self.expression(depth - 1)

    def _line(self) -> bytes:
        made = b""
        for _ in range(self._random.randint(0, 12)):
            stray = self._random.random() < 0.03
            odd = self._random.choice([b"\xff", b"\xc3", b"\xe2\x82", b"\x80"])
            made += odd if stray else self._random.choice(CHARACTERS).encode()
        return made + self._random.choice([b"\n", b"\n", b"\r\n"])


@SOME
@given(random=st.randoms(use_true_random=False))
def test_expressions_find_what_ripgrep_finds_or_are_left_to_it(
    both: Both, tmp_path_factory: pytest.TempPathFactory, random: Random
) -> None:
    root, made = tmp_path_factory.mktemp("lines"), Maker(random)
    (root / "file").write_bytes(made.lines())
    for _ in range(4):
        pattern = Pattern(made.expression(), random.random() < 0.7, random.choice([0, 0, 1]))
        python, ripgrep = both.hits(root, pattern)
        assert python in (ripgrep, "UNAVAILABLE"), pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "a)b", "[a", "[]", "[^]", "a{", "a{}", "a{,2}", "a{1", "{", "{1}", "*a", "+", "?", "(?", "(?z)a",
        r"\x4", r"\x{zz}", r"\x{d800}", r"\x{110000}", r"\x{}", r"\u004", r"\012", r"\1", r"(a)\1", "a{2,1}", r"\N{x}",
        r"\h", r"\R", r"\X", r"\G", r"\K", r"\Z", r"\c", r"\e", r"\Qa\E", r"\é", r"\b{foo}", r"\b{", "(?P<n>a)(?P<n>b)",
        "(?P<1>a)", "(?P<>a)", "(?<=a)b", "(?<!a)b", "(?=a)", "(?!a)", "(?>a)", "(?#c)a", "(?i", "(?i:a", "(?-)a",
        "(?--i)a", "(?ii)a", "(?i-)a", "(?n)a", "(?i)*", r"[\b]", r"[\w-a]", r"[a-\d]", "[z-a]", "[[]", "a\\", r"a\nb",
        r"\r", r"[\n]", r"[\r\n]", r"\x0a", "(?P=n)", "(((", "|*",
    ],
)  # fmt: skip
def test_what_ripgrep_refuses_is_refused(both: Both, tmp_path: Path, pattern: str) -> None:
    (tmp_path / "file").write_text("a\n")
    assert both.hits(tmp_path, Pattern(pattern)) == ("INVALID_ARGUMENT", "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    "pattern",
    [
        "", "|", "}", "]", "a||b", "()", "(?:)", "a?b??", "a{0}", "x{2}", "a{ 1 , 2 }", "(?i)A", "(?s).", "(?m)^a",
        "(?u)a",
        "(?R)a$", "(?U)a+", "(?is)A.", "(?i:A)b", "(?<n>a)", r"\_\-\/\%\"\ \#\&\~\@\!\=\:\;\,\`", r"\t\f\v\a", "[a-]",
        "[-a]", "[a-b-c]", "[]-a]", "[[a]b]", "[a[^b]]", "[a&&]", "[a~~b]", "[--a]", "[[:foo:]]", "[[:alpha:]-z]",
        r"[\pL]", r"[\]]", "[&]", "[a&b]", "[~]", "[ -~]", r"[\x09-\x0d]", "a)(b", "a|)(b", r"\pZ", "[é-ü]", ".{3}",
        "(?i)k", "(?i)[^k]", "(?i)ß", r"\x{212a}",
    ],
)  # fmt: skip
def test_what_ripgrep_takes_is_taken(both: Both, tmp_path: Path, pattern: str) -> None:
    (tmp_path / "file").write_bytes(b"ab\nKk-]\r\na_b x2\n\tz}\n")
    python, ripgrep = both.hits(tmp_path, Pattern(pattern))
    assert python == ripgrep
    assert not isinstance(python, str)


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        (r"\Aa", r"\A"), (r"a\z", r"\z"), ("(?x)a b", "flag x"), ("(?-u)a", "flag -u"), ("(?-m)^a", "flag -m"),
        (r"\p{Greek}", "property"), ("(a*)*", "empty"), (r"\b{start-half}", "start-half"), ("a{5000}", "repetitions"),
        ("(" * 150 + "a" + ")" * 150, "groups"),
    ],
)  # fmt: skip
def test_what_only_ripgrep_knows_is_refused_and_says_so(pattern: str, construct: str) -> None:
    with pytest.raises(ToolError) as caught:
        Expression(pattern)
    assert caught.value.code == "UNAVAILABLE"
    assert "ripgrep" in caught.value.message
    assert construct in caught.value.message


def test_a_broken_expression_says_where_and_what_is_wrong() -> None:
    with pytest.raises(ToolError) as caught:
        Expression("ab[z-a]")
    assert caught.value.message.startswith(
        "pattern is no valid regular expression: a range in [ ] is the wrong way round"
    )
    assert "(character 7)" in caught.value.message


def test_an_empty_match_at_the_edge_of_a_word_beside_bytes_that_are_no_text_is_left_to_ripgrep() -> None:
    assert [matched.spans for matched in Expression(r"(|a*aa|)a*\B").lines("1a\n")] == [[(1, 1)]]
    with pytest.raises(ToolError) as caught:
        list(Expression(r"(|a*aa|)a*\B").lines("\udc80-\udcff\udcff\n"))
    assert caught.value.code == "UNAVAILABLE"


def test_a_character_that_pythons_tables_may_not_know_is_left_to_ripgrep() -> None:
    """U+0CF3 came with Unicode 15, which ripgrep knows and Python 3.11 does not."""
    young = "\u0cf3"
    assert [matched.spans for matched in Expression("a.c").lines(f"a{young}c")] == [[(0, 3)]]
    assert [matched.spans for matched in Expression("(?i)A[^b]").lines(f"a{young}")] == [[(0, 2)]]
    if unicodedata.unidata_version >= "15":
        assert [matched.spans for matched in Expression(r"\w").lines(young)] == [[(0, 1)]]
        return
    with pytest.raises(ToolError) as caught:
        list(Expression(r"\w").lines(young))
    assert caught.value.code == "UNAVAILABLE"


@pytest.fixture(scope="module")
def all_of_unicode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with every character but for ideographs and the like, few on a line, so that all of it is shown.

    Every day, of what lies behind the scripts that most people write with, one in seven.
    """
    root = tmp_path_factory.mktemp("unicode")
    codes = chain(range(1, 0x2000), range(0x2000, 0x110000, 1 if SOME.max_examples > 50 else 7))
    every = (chr(code) for code in codes if not 0xD800 <= code < 0xE000)
    left_out = {"Cn", "Co", "Lo"}
    some = [c for c in every if c < "\u0250" or unicodedata.category(c) not in left_out or ord(c) % 16 == 0]
    known = [c for c in some if c not in "\r\n" and not is_doubtful(c)]
    (root / "file").write_text("\n".join(" ".join(known[at : at + 50]) for at in range(0, len(known), 50)))
    return root


@pytest.mark.parametrize("pattern", [r"\d", r"\s", r"\p{Lu}", r"\pM", r"(?i)[k-s]", r"(?i)[à-ω]", r"\w", r"\b"])
def test_sets_have_the_same_members_in_all_of_unicode(
    both: Both, all_of_unicode: Path, deep: bool, pattern: str
) -> None:
    if pattern == r"\b" and not deep:
        pattern = r"[\w&&[^a-z]]\b"
    python, ripgrep = both.hits(all_of_unicode, Pattern(pattern))
    assert python == ripgrep
    assert python


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("(a+)+b", "b" + "a" * 5_000),
        ("(a|aa)+b", "b" + "a" * 5_000),
        (r"(\w+\s*)+:", ":" + "word " * 1_000),
        (".*foo.*bar.*x", "x" + "foo bar " * 2_000),
        ("(?:a?){20}a{20}b", "b" + "a" * 60),
        ("[a-z]+X", "X" + "a" * 20_000),
        ("(.*)(.*)(.*)(.*)(.*)z", "zz" + "a" * 300),
    ],
)
def test_no_expression_takes_forever(both: Both, tmp_path: Path, pattern: str, line: str) -> None:
    (tmp_path / "file").write_text(f"{line}\n")
    python, ripgrep = both.hits(tmp_path, Pattern(pattern))
    assert python in (ripgrep, "UNAVAILABLE")
