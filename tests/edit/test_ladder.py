"""What an oldText means where it is not in the file as it is: what each strategy forgives, and what it does not."""

from itertools import pairwise

import pytest

from handrail.edit.ladder.strategies import FORGIVEN
from handrail.edit.newlines import replaced
from handrail.edit.placing import Placed, place
from handrail.protocol.error import ToolError

SHOP = """\
class Shop:
    def total(self, items):
        result = 0
        for item in items:
            result += item.price

        return result

    def name(self):
        return "The “best” shop"
"""


def edited(text: str, old: str, new: str, *, every: bool = False) -> tuple[str, Placed]:
    placed = place(text, old, new, "shop.py", every=every)
    return replaced(text, placed.replacements), placed


def refusal(text: str, old: str, new: str) -> ToolError:
    with pytest.raises(ToolError) as caught:
        place(text, old, new, "shop.py")
    return caught.value


# ruff: noqa: E501  a case is easier to read in one line than in several
POSITIVE = {
    "white space at the ends of lines": (
        "line-trimmed",
        "        result = 0  \n        for item in items:\n",
        "        result = 1\n        for item in items:\n",
        ("        result = 0\n", "        result = 1\n"),
    ),
    "a last line that lost its indentation": (
        "line-trimmed",
        "            result += item.price\n\nreturn result",
        "            result += item.price\n\nreturn round(result)",
        ("        return result", "        return round(result)"),
    ),
    "a block that lost its indentation": (
        "indentation-flexible",
        "for item in items:\n    result += item.price",
        "for item in items:\n    if item:\n        result += item.price",
        ("            result += item.price", "            if item:\n                result += item.price"),
    ),
    "a block that is too far to the right": (
        "indentation-flexible",
        "            result = 0\n            for item in items:",
        "            result = 1\n            for item in items:",
        ("result = 0", "result = 1"),
    ),
    "tabs for spaces": (
        "indentation-flexible",
        "\t\tfor item in items:\n\t\t\tresult += item.price",
        "\t\tfor item in items:\n\t\t\tif item:\n\t\t\t\tresult += item.price",
        ("            result += item.price", "            if item:\n                result += item.price"),
    ),
    "two spaces for four": (
        "indentation-flexible",
        "  def total(self, items):\n    result = 0\n    for item in items:\n      result += item.price",
        "  def total(self, items):\n    result = 0\n    for item in items:\n      if item:\n        result += item.price",
        ("            result += item.price", "            if item:\n                result += item.price"),
    ),
    "blank lines around it": (
        "trimmed-boundary",
        "\n\n        result = 0\n        for item in items:\n\n\n",
        "\n\n        result = 1\n        for item in items:\n\n\n",
        ("result = 0", "result = 1"),
    ),
    "spaces around a part of a line": (
        "trimmed-boundary", " self, items ", " self, items, tax ", ("self, items", "self, items, tax"),
    ),
    "white space within lines": (
        "whitespace-normalised",
        "    def total( self,items ):\n        result=0",
        "    def total( self,items,tax ):\n        result=0",
        ("(self, items)", "(self, items,tax)"),
    ),
    "white space within a part of a line": (
        "whitespace-normalised", "total( self,items )", "total( self,items,tax )", ("(self, items)", "(self, items,tax)"),
    ),
    "a blank line that is not in oldText": (
        "whitespace-normalised",
        "            result += item.price\n        return result",
        "            result += item.price\n\n        return round(result)",
        ("return result", "return round(result)"),
    ),
    "plain quotes for curly ones, on a line that stays": (
        "typography",
        "    def name(self):\n        return \"The \"best\" shop\"",
        "    def title(self):\n        return \"The \"best\" shop\"",
        ("def name", "def title"),
    ),
    "plain quotes for curly ones, on a line that changes": (
        "typography",
        "    def name(self):\n        return \"The \"best\" shop\"",
        "    def name(self):\n        return \"The \"best\" little shop\"",
        ("” shop", "” little shop"),
    ),
    "line numbers": (
        "line-numbers",
        "     3\t        result = 0\n     4\t        for item in items:",
        "     3\t        result = 1\n     4\t        for item in items:",
        ("result = 0", "result = 1"),
    ),
    "line numbers in oldText alone": (
        "line-numbers",
        "3→        result = 0\n4→        for item in items:",
        "        result = 1\n        for item in items:",
        ("result = 0", "result = 1"),
    ),
    "escaped newlines": (
        "escape-normalised",
        "        result = 0\\n        for item in items:",
        "        result = 1\\n        for item in items:",
        ("result = 0", "result = 1"),
    ),
    "lines that were left out": (
        "elision",
        "    def total(self, items):\n        # ... existing code ...\n        return result",
        "    def total(self, items, tax):\n        # ... existing code ...\n        return result",
        ("self, items", "self, items, tax"),
    ),
    "an older word on a line that stays": (
        "context-aware",
        "    def total(self, item):\n        result = 0\n        for item in items:\n            result += item.price\n",
        "    def total(self, item):\n        result = 0\n        for item in items:\n            result += item.cost\n",
        ("item.price", "item.cost"),
    ),
    "a line that came in between lines that stay": (
        "context-aware",
        "class Shop:\n    def total(self, items):\n        for item in items:\n            result += item.price\n\n        return result\n",
        "class Shop:\n    def total(self, items):\n        for item in items:\n            result += item.cost\n\n        return result\n",
        ("item.price", "item.cost"),
    ),
    "an older word on a line that changes, where newText has the file's": (
        "block-anchor",
        "    def total(self, items):\n        results = 0\n        for item in items:\n            result += item.price\n",
        "    def total(self, items):\n        result = 0.0\n        for item in items:\n            result += item.price\n",
        ("result = 0\n", "result = 0.0\n"),
    ),
    "an older word on a line that changes elsewhere": (
        "block-anchor",
        "    def total(selfs, items):\n        result = 0\n        for item in items:\n            result += item.price\n",
        "    def total(selfs, items, *, tax):\n        result = 0\n        for item in items:\n            result += item.price\n",
        ("self, items", "self, items, *, tax"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", POSITIVE)
def test_what_is_meant_is_changed_and_nothing_else(name: str) -> None:
    strategy, old, new, (before, after) = POSITIVE[name]
    assert SHOP.count(before) == 1
    text, placed = edited(SHOP, old, new)
    assert text == SHOP.replace(before, after)
    assert placed.strategy == strategy


def test_a_text_that_is_there_as_it_is_is_taken_first() -> None:
    text = "  total = 1\ntotal  = 1\ntotal = 1;\n"
    assert edited(text, "total = 1;", "x") == ("  total = 1\ntotal  = 1\nx\n", place(text, "total = 1;", "x", "a"))
    assert edited(text, "total = 1;", "x")[1].strategy == "exact"


NEGATIVE = {
    "two places but for white space": ("AMBIGUOUS_MATCH", "a = 1\nb = 2\n\na = 1\nb = 2\n", "a = 1 \nb = 2", "c\nb = 2"),
    "two places at other indentations": ("AMBIGUOUS_MATCH", "  a = 1\n  b\n    a = 1\n    b\n", "a = 1\nb", "c\nb"),
    "a word is another, and there are few lines": ("NO_MATCH", "alpha = 1\nbeta = 2\n", "alphas = 1\nbeta = 2", "x"),
    "a number is another": (
        "NO_MATCH", "def a():\n    x = 1\n    y = 2\n    z = 3\n", "def a():\n    x = 1\n    y = 4\n    z = 3", "x",
    ),
    "another function of the same shape": (
        "NO_MATCH",
        "def test_bar():\n    shop = Shop()\n    shop.open()\n    assert shop.is_open\n",
        "def test_foo():\n    shop = Shop()\n    shop.open()\n    assert shop.is_open\n",
        "def test_foo():\n    shop = Shop()\n    shop.open()\n    assert not shop.is_open\n",
    ),
    "another form of the name of a function": (
        "NO_MATCH",
        "def users():\n    shop = Shop()\n    shop.open()\n    return shop.people\n",
        "def user():\n    shop = Shop()\n    shop.open()\n    return shop.people\n",
        "def user():\n    shop = Shop()\n    shop.open()\n    return shop.people[0]\n",
    ),
    "two that are each a word away": (
        "NO_MATCH",
        "def total_a():\n    one = 1\n    two = 2\n    return one\n\ndef total_b():\n    one = 1\n    two = 2\n    return one\n",
        "def total():\n    one = 1\n    two = 2\n    return one",
        "def total():\n    one = 1\n    two = 3\n    return one",
    ),
    "a line that goes has another word": (
        "NO_MATCH",
        "def total():\n    first = 1\n    second = 2\n    third = 3\n    return first\n",
        "def total():\n    first = 1\n    seconds = 2\n    third = 3\n    return first\n",
        "def total():\n    first = 1\n    third = 3\n    return first\n",
    ),
    "a blank line that neither text has": (
        "NO_MATCH", "one = 1\n\ntwo = 2\nthree = 3\n", "one = 1\ntwo = 2\nthree = 3", "one = 1\ntwo = 2\nthree = 4",
    ),
    "words that are not apart": ("NO_MATCH", "return value\n", "returnvalue", "x"),
    "the inside of a word": ("NO_MATCH", "recall(a)\n", "call( a)", "x"),
    "left out in oldText alone": (
        "NO_MATCH", "one = 1\ntwo = 2\nthree = 3\nfour = 4\n", "one = 1\n# ...\nfour = 4", "five = 5",
    ),
    "what is left out could end at two places that change": (
        "AMBIGUOUS_MATCH",
        "begin()\nwork()\nend(1)\nwork()\nend(1)\n",
        "begin()\n...\nend(1)",
        "begin()\n...\nend(2)",
    ),
    "made before": (
        "NO_MATCH",
        "def total():\n    first = 1\n    second = 22\n    third = 3\n    return first\n",
        "def total():\n    first = 1 \n    second = 2\n    third = 3\n    return first\n",
        "def total():\n    first = 1\n    second = 22\n    third = 3\n    return first\n",
    ),
    "lines that came in before": (
        "NO_MATCH", "import alpha\nimport beta\nimport gamma_delta\n", "import alpha\nimport beta ", "import alpha\nimport beta \nimport gamma_delta",
    ),
    "an indentation that nothing tells": (
        "NO_MATCH", "if a:\n\tif b:\n            one()\n\t    two()\n", "if a:\n  if b:\n   one()\n    two()", "if a:\n  if b:\n   one()\n         three()",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NEGATIVE)
def test_what_could_be_a_wrong_guess_is_refused(name: str) -> None:
    code, text, old, new = NEGATIVE[name]
    assert refusal(text, old, new).code == code


def test_a_refusal_says_which_lines_may_be_meant_and_why_not() -> None:
    text = "one = 1\n\ntwo = 2\nthree = 3\n"
    error = refusal(text, "one = 1\ntwo = 2\nthree = 3", "one = 1\ntwo = 2\nthree = 4")
    assert "Lines 1–4 may be meant, but the file has other blank lines in it than oldText" in error.message
    assert error.details is not None
    assert (error.details["refused"]["first"], error.details["refused"]["last"]) == (1, 4)


def test_several_places_say_what_was_forgiven() -> None:
    error = refusal("a = 1\nb\n\n\na = 1\nb\n", "a = 1 \nb", "c")
    assert "oldText occurs 2 times but for white space around lines: lines 1, 5" in error.message
    assert error.details is not None
    assert error.details["strategy"] == "line-trimmed"


def test_all_places_are_changed_each_in_its_own_way() -> None:
    text = "if a:\n    call( x )\nelse:\n\tif b:\n\t\tcall( x )\n"
    result, placed = edited(text, "call(x)", "call(y)", every=True)
    assert result == "if a:\n    call( y )\nelse:\n\tif b:\n\t\tcall( y )\n"
    assert (placed.strategy, len(placed.spans)) == ("whitespace-normalised", 2)


def test_all_places_of_the_safest_strategy_alone_are_changed() -> None:
    result, placed = edited("  x = 1  \nx = 1\n", "x = 1 \n", "y = 1\n", every=True)
    assert (result, placed.strategy) == ("  x = 1  \ny = 1\n", "line-trimmed")


def test_words_are_never_forgiven_where_all_places_are_meant() -> None:
    old = SHOP[: SHOP.index("\n\n")].replace("items)", "item)")
    assert edited(SHOP, old, old.replace("price", "cost"))[1].strategy in FORGIVEN
    with pytest.raises(ToolError):
        place(SHOP, old, "x", "shop.py", every=True)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("  b\n", "", "a\nc\n"),
        ("a \nb\nc\n", "", ""),
        ("  b", "", "a\n\nc\n"),
        ("  b\n", "  x", "a\nx\nc\n"),
        ("  b\n", "  x\n\n", "a\nx\n\nc\n"),
        ("  b", "  x\n", "a\nx\n\nc\n"),
        ("b\nc \n", "b\nx\n", "a\nb\nx\n"),
        ("b\nc \n\n\n", "b\n", "a\nb\n"),
    ],
)
def test_lines_end_as_the_texts_say(old: str, new: str, expected: str) -> None:
    assert edited("a\nb\nc\n", old, new)[0] == expected


@pytest.mark.parametrize("old", ["two  \n", "two \n\n"])
def test_a_file_without_a_last_newline_stays_without(old: str) -> None:
    assert edited("one\ntwo", old, "three\n")[0] == "one\nthree"


def test_the_strategies_are_in_the_order_they_are_tried() -> None:
    order = ["exact", *FORGIVEN]
    needed = [
        "exact", "line-trimmed", "indentation-flexible", "trimmed-boundary", "whitespace-normalised",
        "escape-normalised", "context-aware", "block-anchor",
    ]  # fmt: skip
    assert all(order.index(one) < order.index(other) for one, other in pairwise(needed))


def test_more_places_than_can_be_looked_at_are_refused_and_not_half_of_them_changed() -> None:
    text = "".join(f"{' ' * (number % 40)}total = price\n" for number in range(10_000))
    old = "total  = price\n" * 400
    with pytest.raises(ToolError) as caught:
        place(text, old, "x\n", "shop.py", every=True)
    assert caught.value.code == "LIMIT_EXCEEDED"
    assert "more than" in refusal(text, old, "x\n").message
