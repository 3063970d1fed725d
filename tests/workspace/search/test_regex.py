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
from handrail.workspace.search.regex import Expression

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
        "(?--i)a", "(?ii)a", "(?i-)a", "(?n)a", "(?i)*", r"[\w-a]", r"[a-\d]", "[z-a]", "a\\", r"a\nb",
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
        "(?R)a$", "(?is)A.", "(?i:A)b", "(?<n>a)", r"\_\-\/\%\"\ \#\&\~\@\!\=\:\;\,\`", r"\t\f\v\a", "[a-]",
        "[-a]", "[a-b-c]", "[]a]", "[[:alpha:]-z]", r"[\]]", "[&]", "[a&b]", "[~]", "[ -~]", r"[\x09-\x0d]", "a)(b",
        "a|)(b", "[é-ü]", ".{3}", "(?i)k", "(?i)[^k]", "(?i)日", r"\x{212a}", r"[\s\S]b", r"[^\W_]", r"[\D]", r"\<a\b",
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
        (r"\Aa", r"\A"), (r"a\z", r"\z"), ("(?x)a b", "(?x)"), ("(?-u)a", "(?-u)"), ("(?-m)^a", "(?-m)"),
        ("(?U)a+", "(?U)"), (r"\p{Greek}", r"\p"), (r"[\pL]", r"\p"), (r"\b{start}", r"\b{start}"),
        ("(a*)*", "empty"), ("a{5000}", "repetitions"), ("(" * 150 + "a" + ")" * 150, "groups"),
        ("[a-z&&[^b]]", "[a-z&&"), ("[a--b]", "set operations"), ("[[a]b]", "[[a]b]"), ("[[:foo:]]", "set inside"),
        ("(?i)ß", "in any case"), ("(?i)[à-ö]", "in any case"), ("(a+)+b", "inside each other"),
        ("(a|aa)+b", "inside each other"), (r"(\w+\s*)+:", "inside each other"),
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
        "pattern is not a valid regular expression: a range in [ ] is the wrong way round"
    )
    assert "(character 7)" in caught.value.message


def find_spans(pattern: str, text: str) -> list[list[tuple[int, int]]]:
    return [line.spans for line in Expression(pattern).lines(text)]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"\w+", "\u0cf3"),  # came with Unicode 15
        (r"\w+", "a\u0301"),  # a combining mark
        (r"\bx\b", "x²"),  # Python takes it for a word's character, Rust does not
        (r"\ba\B", "\udc80a"),  # a byte that could continue a character
        (r"a*\B", "\udcff-"),  # which empty matches ripgrep finds depends on how it searches
        ("a*", "é"),  # so many empty matches as it has bytes
    ],
)
def test_a_line_that_ripgrep_may_read_differently_is_left_to_it(pattern: str, text: str) -> None:
    with pytest.raises(ToolError) as caught:
        find_spans(pattern, f"{text}\n")
    assert caught.value.code == "UNAVAILABLE"


def test_a_doubtful_character_in_a_line_that_cannot_match_is_no_reason_to_refuse() -> None:
    assert find_spans(r"\bfoo\b", "x² \udc80\na foo\n") == [[(2, 5)]]
    assert find_spans("a.c", "a\u0cf3c") == [[(0, 3)]]
    assert find_spans("(?i)A[^b]", "a\u0cf3") == [[(0, 2)]]


def test_letters_digits_and_emoji_of_common_scripts_are_answered() -> None:
    assert find_spans(r"\w+", "größe – Σίσυφος 日本語 ٣ 😀✅\n") == [[(0, 5), (8, 15), (16, 19), (20, 21)]]


def test_sets_mean_the_same_beside_what_is_no_character() -> None:
    """No set has a byte that is not UTF-8, nor a line's end."""
    text = "a\udc80\ue000\r\nb\udcffz\n"
    for pattern in ("[^q]+", r"[\W\w]+", ".+", r"[\x00-\x{10ffff}]+"):
        assert find_spans(pattern, text.replace("\ue000", "é")) == [[(0, 1), (2, 3)], [(0, 1), (2, 3)]]


def is_answered(character: str) -> bool:
    """Whether Python decides if a character belongs to words."""
    try:
        find_spans(r"\w", character)
    except ToolError:
        return False
    return True


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
    known = [c for c in some if c not in "\r\n" and is_answered(c)]
    (root / "file").write_text("\n".join(" ".join(known[at : at + 50]) for at in range(0, len(known), 50)))
    return root


@pytest.mark.parametrize("pattern", [r"\d", r"\s", r"\S", r"(?i)[k-s]", r"\w", r"\W", r"\b"])
def test_sets_have_the_same_members_in_all_of_unicode(
    both: Both, all_of_unicode: Path, deep: bool, pattern: str
) -> None:
    if pattern == r"\b" and not deep:
        pattern = r"[^a-z\W]\b"
    python, ripgrep = both.hits(all_of_unicode, Pattern(pattern))
    assert python == ripgrep
    assert python
