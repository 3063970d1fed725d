"""What an oldText means where it is not in the file as it is: what each strategy forgives, and what it does not."""

from itertools import pairwise

import pytest

from handrail.edit.fuzzy.strategies import FORGIVEN
from handrail.edit.lines import apply_replacements
from handrail.edit.match import EditMatch, match_edit
from handrail.protocol.errors import ToolError

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


def edited(text: str, old: str, new: str, *, every: bool = False) -> tuple[str, EditMatch]:
    placed = match_edit(text, old, new, "shop.py", every=every)
    return apply_replacements(text, placed.replacements), placed


def refusal(text: str, old: str, new: str) -> ToolError:
    with pytest.raises(ToolError) as caught:
        match_edit(text, old, new, "shop.py")
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
    "a newline before and behind a line": (
        "trimmed-boundary", "\n\n  class Shop:\n\n", "\n\n  class Store:\n\n", ("class Shop", "class Store"),
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
        "    def total(self, old_items):\n        result = 0\n        for item in items:\n            result += item.price\n",
        "    def total(self, old_items):\n        result = 0\n        for item in items:\n            result += item.cost\n",
        ("item.price", "item.cost"),
    ),
    "a line that came in between lines that stay": (
        "context-aware",
        SHOP.replace("        result = 0\n", "").replace(" shop\"\n", " shop\""),
        SHOP.replace("        result = 0\n", "").replace(" shop\"\n", " shop\"").replace("price", "cost"),
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
        "class Shop:\n    def total(selfs, items):\n        result = 0\n        for item in items:\n",
        "class Shop:\n    def total(selfs, items, *, tax):\n        result = 0\n        for item in items:\n",
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
    assert edited(text, "total = 1;", "x") == ("  total = 1\ntotal  = 1\nx\n", match_edit(text, "total = 1;", "x", "a"))
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
    "a line that goes on": ("NO_MATCH", "timeout = 1.5\n", "timeout = 1\n\n", "timeout = 2\n\n"),
    "a line that goes on, and the text ends it": ("NO_MATCH", "    return value or other\n", "   return value\n", "   return None\n"),
    "a line that begins before it": ("NO_MATCH", "    y = foo(1)\n    bar()\n", "   foo(1)\n   bar()\n", "   foo(2)\n   bar()\n"),
    "a version that goes on": ("NO_MATCH", "requests  == 2.28.1\n", "requests == 2.28", "requests == 2.29"),
    "a name that goes on": ("NO_MATCH", "name:  foo-bar\n", "name: foo", "name: baz"),
    "a sibling that only turns the word round": (
        "NO_MATCH",
        "def all(self):\n    if not self.ready:\n        self.open()\n    self.run()\n    return self.result\n",
        "def all(self):\n    if self.ready:\n        self.open()\n    self.run()\n    return self.result\n",
        "def all(self):\n    if self.ready:\n        self.open()\n    self.run()\n    return None\n",
    ),
    "a sibling of a line that is still there": (
        "NO_MATCH",
        "run(encode)\nx = 1\n\nrun(encoded)\ntable = make()\nresult = list()\nprint(result, table)\n",
        "run(encode)\ntable = make()\nresult = list()\nprint(result, table)\n",
        "run(encode)\ntable = make()\nresult = list()\nprint(result)\n",
    ),
    "at another indentation, where another place lacks a blank line": (
        "AMBIGUOUS_MATCH",
        "def a():\n    x = load()\n\n    save(x)\n\nclass C:\n    def b(self):\n        x = load()\n        save(x)\n",
        "    x = load()\n    save(x)",
        "    x = load()\n    check(x)\n    save(x)",
    ),
    "made before, and there is a twin at another indentation": (
        "NO_MATCH",
        "def f():\n    x = load_all()\n    check(x)\n    save(x)\n\nclass C:\n    def f(self):\n        x = load_all()\n        save(x)\n",
        "    x = load_all()\n    save(x)",
        "    x = load_all()\n    check(x)\n    save(x)",
    ),
    "a short line that came in before": ("NO_MATCH", "extern_thing;\n#endif\n", "extern_thing; ", "extern_thing; \n#endif"),
    "left out, and the end is in another block": (
        "NO_MATCH",
        "def a():\n    x = 1\n    return x + 1\n\ndef b():\n    x = 1\n    return y\n",
        "def a():\n    ...\n    return y\n",
        "def a():\n    ...\n    return z\n",
    ),
    "left out, and the parts are at two rungs": (
        "NO_MATCH",
        "  begin(x)\n  one()\nfinish(y)\ntwo()\nbegin(x)\nthree()\n  finish(y)\nend\n",
        "begin(x)\n...\nfinish(y)",
        "begin(z)\n...\nfinish(w)",
    ),
    "left out, and the end is there very often": (
        "NO_MATCH",
        "finish()\n" * 199 + "head_of_it()\none()\nfinish()\ntwo()\nfinish()\n",
        "head_of_it()\n...\nfinish()",
        "head_of_it()\n...\nfinish(1)",
    ),
    "a number that is no line number": (
        "NO_MATCH", 'names = [\n    "alpha",\n]\ncodes = {\n    1: "alfa",\n}\n', '    1: "alpha",', '    1: "gamma",',
    ),
    "escapes that can be read in two ways": ("NO_MATCH", 'write("{}", x);\n', 'write(\\"{}\\", x);', "write(\\\"{}\\\", x, '\\\\');"),
    "an escape that only newText has": ("NO_MATCH", 'say("hi")\n', 'say(\\"hi\\")', "say(\\\"hi\\\", 'it\\'s')"),
    "one step that could be a move or a width": (
        "NO_MATCH",
        "class A:\n    def f(self):\n        self.name = value\n",
        "                self.name = value",
        "                self.name = value\n\n        def h(self):\n                return 1",
    ),
    "a blank line between two lines that change": (
        "NO_MATCH", "First paragraph.\n\nSecond paragraph.\n", "First paragraph.\nSecond paragraph.", "One paragraph.\nTwo paragraph.",
    ),
    "other words of the same length": (
        "NO_MATCH",
        "def add(a):\n    # totals – sum of\n    one = 1\n    two = 2\n",
        "def add(a):\n    # total – sums of\n    one = 1\n    two = 2\n",
        "def add(a):\n    # total – sums of\n    one = 1\n    two = 2\n    # done – really\n",
    ),
    "other words on the first line, which changes": (
        "NO_MATCH",
        "    def total(self, items):\n        result = 0\n        for item in items:\n            result += item\n",
        "    def total(selfs, items):\n        result = 0\n        for item in items:\n            result += item\n",
        "    def total(selfs, items, *, tax):\n        result = 0\n        for item in items:\n            result += item\n",
    ),
    "a sign more on a line that changes": (
        "NO_MATCH",
        "first(one)\nsecond(two)\nthird('a|b+c', x)\nfourth(four)\nfifth(five)\nsixth(six)\n",
        "first(one)\nsecond(two)\nthird('ab+c', x)\nfourth(four)\nfifth(five)\nsixth(six)\n".replace("ab", "a b"),
        "first(one)\nsecond(two)\nthird('a b+c', y)\nfourth(four)\nfifth(five)\nsixth(six)\n",
    ),
    "several lines, and the last goes on": (
        "NO_MATCH", "a(new B() {\n\tvoid run() {\n\t}\n});\n", "\ta(new B() {\n\t\tvoid run() {\n\t\t}\n\t}", "x",
    ),
    "a short line that came in before, and white space that went": (
        "NO_MATCH", "extern_thing;\n#endif\n", "extern_thing; ", "extern_thing;\n#endif",
    ),
    "narrower steps that were made before": (
        "NO_MATCH",
        "async function main() {\n  const a = 1\n  try {\n    b()\n  } catch (e) {}\n}\n",
        "async function main() {\n    const a = 1\n    try {\n        b()\n    } catch (e) {}\n}\n",
        "async function main() {\n  const a = 1\n  try {\n    b()\n  } catch (e) {}\n}\n",
    ),
    "numbers in a part of newText": ("NO_MATCH", "a = 1\nb = 2\n", "1\ta = 1\n2\tb = 2", "1\ta = 1\nx = 1\ny = 1\nz = 1"),
    "a row of a table": ("NO_MATCH", "id\tv\n7\tfoo\nfoo\n", "8\tfoo", "8\tbar"),
    "two lines whose indentations contradict each other": (
        "NO_MATCH", "if a:\n    run(x)\ndone(y)\n", "run( x)\ndone(y)", "run( x)\nlog()\ndone(y)",
    ),
    "three lines whose indentations contradict each other": (
        "NO_MATCH",
        "def f():\n    if a:\n        run(x)\n        stop(x)\n    done(y)\n",
        "    run(x)\n    stop(x)\n    done(y)\n",
        "    run(x)\n    stop(x)\n    log()\n    done(y)\n",
    ),
    "a whole line and a part of one": ("AMBIGUOUS_MATCH", "x = foo(a, b)\nfoo(a, b)\n", "foo(a,b)", "bar(a,b)"),
    "an escape that is the text's own": (
        "NO_MATCH", 'say("hi")\nlog("ho")\n', 'say(\\"hi\\")\\nlog(\\"ho\\")', 'say(\\"hi\\n\\")\\nlog(\\"ho\\")',
    ),
    "a tab that is a path": ("NO_MATCH", "a = 1\nb = 2\n", "a = 1\\nb = 2\\n", "a = 'C:\\temp'\\nb = 2\\n"),
    "left out, and a line that comes in is among them": (
        "NO_MATCH",
        "def f():\n    a = 1\n    check_all_values(b)\n    c = 3\n    return 1\n",
        "def f():\n    a = 1\n    # ...\n    return 1",
        "def f():\n    a = 1\n    # ...\n    check_all_values(b)\n    return 1",
    ),
    "brackets alone": ("NO_MATCH", "a {\n    b {\n    }\n}\n", "  }\n  }", "  }\n  c()\n  }"),
    "nothing would change": ("NO_MATCH", "  x\n  y\n  y\n  y\n    z\n", "  x\n  y\n  y\ny\n    z", "  x\n  y\ny\n  y\n    z"),
    "an indentation that nothing tells": (
        "NO_MATCH", "if a:\n\tif b:\n            one()\n\t    two()\n", "if a:\n  if b:\n   one()\n    two()", "if a:\n  if b:\n   one()\n         three()",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NEGATIVE)
def test_what_could_be_a_wrong_guess_is_refused(name: str) -> None:
    code, text, old, new = NEGATIVE[name]
    assert refusal(text, old, new).code == code


C = "void f() {\n    a();\n    b();\n}\n"
AT_FILE_DEPTH = {
    "oldText lost its indentation": (C, "a();\nb();", "    a(1);\n    b();", ("a()", "a(1)")),
    "oldText is too deep": (C, "        a();\n        b();", "    a(1);\n    b();", ("a()", "a(1)")),
    "every line changes": (C, "a();\nb();", "    c();\n    d();", ("a();\n    b();", "c();\n    d();")),
    "oldText has tabs": (C, "\ta();\n\tb();", "    a(1);\n    b();", ("a()", "a(1)")),
    "the file has tabs": (C.replace("    ", "\t"), "    a();\n    b();", "\ta(1);\n\tb();", ("a()", "a(1)")),
    "oldText has narrower steps": (
        SHOP, "class Shop:\n  def total(self, items):\n    result = 0", "class Shop:\n    def sum(self, items):\n        result = 1",
        ("total(self, items):\n        result = 0", "sum(self, items):\n        result = 1"),
    ),
    "the first line alone is out of line": (C, "    a();\nb();", "    a(1);\n    b();", ("a()", "a(1)")),
    "lines are put into a block": (
        C, "a();\nb();", "    if (c) {\n        a();\n    }\n    b();", ("    a();", "    if (c) {\n        a();\n    }"),
    ),
    "a block is taken away": (
        "f() {\n  x();\n  if (c) {\n    a();\n  }\n}\n", "x();\nif (c) {\n  a();\n}", "  x();\n  a();", ("if (c) {\n    a();\n  }", "a();"),
    ),
    "white space within lines": (C, "a( );\nb();", "    a( 1);\n    b();", ("a()", "a( 1)")),
    "line numbers": (C, "2\ta();\n3\tb();", "2\t    a(1);\n3\t    b();", ("a()", "a(1)")),
    "escapes": ('f() {\n    a("x");\n    b();\n}\n', 'a(\\"x\\");\\nb();', '    a(\\"y\\");\\n    b();', ("x", "y")),
    "curly quotes": ('f() {\n    a("x");\n    b();\n}\n', "a(“x”);\nb();", '    a("y");\n    b();', ("x", "y")),
    "an older word": (
        SHOP,
        "def total(self, old_items):\n    result = 0\n    for item in items:\n        result += item.price",
        "    def total(self, old_items):\n        result = 1\n        for item in items:\n            result += item.price",
        ("result = 0", "result = 1"),
    ),
    "a part of a line": ("f() {\n    a( x ); // c\n}\n", "a(x);", "    a(y);", ("x", "y")),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_FILE_DEPTH)
def test_new_text_that_is_at_the_depth_of_the_file_is_not_moved(name: str) -> None:
    text, old, new, (before, after) = AT_FILE_DEPTH[name]
    assert edited(text, old, new)[0] == text.replace(before, after)


def test_new_text_at_a_depth_of_its_own_is_refused_with_all_three_depths() -> None:
    neither = "newText is indented neither as oldText nor as the file (newText: 2 spaces, oldText: none, the file: 4 spaces; indent newText as the file)"
    assert neither in refusal(C, "a();\nb();", "  a(1);\n  b();").message
    assert "(newText: 1 tab, oldText: none, the file: 4 spaces;" in refusal(C, "a();\nb();", "\ta(1);\n\tb();").message
    assert (
        "newText begins at an indentation that neither"
        in refusal("f() {\n    a( x ); // c\n}\n", "a(x);", "  a(y);").message
    )


def test_new_text_that_is_now_at_one_depth_and_now_at_another_is_refused() -> None:
    some = "some lines of newText are indented as oldText, others as the file"
    for new in ("a();\n    b();\n    c();", "    a(1);\nb();", "a(1);\n    b();"):
        assert some in refusal(C, "a();\nb();", new).message, new


def test_one_line_at_the_depth_of_the_file_does_not_speak_for_others_that_are_at_no_depth() -> None:
    text = "def a(x):\n    found = []\n    for one in x:\n        with quiet():\n            found.append(one)\n    return found\n"
    old = "".join(f" {line}\n" for line in text.splitlines())
    new = "    def a(x):\n        return b(x)\n\n    def b(x):\n        found = []\n        with quiet():\n            found += x\n        return found\n"
    assert "{new}" not in refusal(text, old, new).message


def test_a_bracket_that_comes_in_has_no_comma_of_another_one() -> None:
    text = "t := []T{\n\t{\n\t\tname: a,\n\t},\n}\nfor _, one := range t {\n\tr.Handle(one.name, run)\n\tserve(r)\n}\n"
    old = "\t\tname: a,\n\t}\n}\nfor _, one := range t {\n\tr.Handle(one.name, run)\n\tserve(r)"
    new = "\t\tname: a,\n\t},\n\t{\n\t\tname: b,\n\t},\n}\nfor _, one := range t {\n\tif one.ok {\n\t\tr.Handle(one.name, run)\n\t}\n\tserve(r)"
    result, _ = edited(text, old, new)
    assert "\t\tr.Handle(one.name, run)\n\t}\n\tserve(r)" in result


def test_of_two_functions_that_do_the_same_the_other_one_is_not_taken() -> None:
    block = "    if not {}:\n        out = open_default() or Text()\n        yield out, False\n        return\n"
    middle = "\n    import finder\n\n    name = parts[0]\n    params = parts[1:]\n\n    path = finder.find_path(name)\n"
    old = block.format("parts") + middle + block.format("path")
    other = old.replace("    import finder\n", "    import finder\n    import starter\n")
    text = f"def one(parts):\n{old.replace('out', 'stream')}\n\ndef other(parts):\n{other}"
    assert refusal(text, old, old.replace("yield out, False", "yield from wrap(out)")).code == "NO_MATCH"


def test_a_string_of_white_space_is_not_taken_for_another_one() -> None:
    text = 'if a {\n    write(b"       ")?;\n}\n'
    assert "white space in a string" in refusal(text, 'if a {\n  write(b"  ")?;\n}', "if a {\n  pad()?;\n}").message


def test_a_refusal_says_which_lines_may_be_meant_and_why_not() -> None:
    text = "one = 1\n\ntwo = 2\nthree = 3\n"
    error = refusal(text, "one = 1\ntwo = 2\nthree = 3", "one = 1\ntwo = 2\nthree = 4")
    assert "Lines 1–4 may be meant, but the file has other blank lines than oldText" in error.message
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
    old = SHOP[: SHOP.index("\n\n")].replace("items)", "old_items)")
    assert edited(SHOP, old, old.replace("price", "cost"))[1].strategy in FORGIVEN
    with pytest.raises(ToolError):
        match_edit(SHOP, old, "x", "shop.py", every=True)


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


def test_a_line_that_stays_in_both_texts_and_is_gone_from_the_file_leaves_no_gap() -> None:
    kept = "keep_first = compute()\nkeep_second = compute()\nkeep_third = compute()\n"
    text = f"{kept}beta = remove_me()\ndelta = remove_me_too()\nrest = 1\nrest_b = 2\n"
    old = f"{kept}beta = remove_me()\ngamma = stays_here()\ndelta = remove_me_too()"
    assert edited(text, old, f"{kept}gamma = stays_here()")[0] == f"{kept}rest = 1\nrest_b = 2\n"


def test_quotes_of_both_kinds_are_straightened_where_one_was_curled() -> None:
    result, _ = edited('if (a == "tab")\n', "if (a == “tab”)", "if (a == “tab” || b == ‘t’)")
    assert result == "if (a == \"tab\" || b == 't')\n"


def test_lines_are_taken_away_although_what_is_left_of_them_is_in_the_file() -> None:
    old = "        result = 0  \n        for item in items:\n            result += item.price\n"
    text, _ = edited(SHOP, old, "        result = 0\n        for item in items:\n")
    assert text == SHOP.replace("            result += item.price\n", "")


def test_all_before_a_mark_can_go_with_its_blank_line() -> None:
    text = "import sys\n\nimport shop\none = 1\ntwo = 2\n"
    assert (
        edited(text, "import sys\n\n# ... existing code ...\ntwo = 2\n", "# ... existing code ...\ntwo = 2\n")[0]
        == text[12:]
    )


def test_one_place_that_comes_near_is_taken_and_of_two_none() -> None:
    block = "setup(alpha_{})\nfirst_step(1)\nsecond_step(2)\nthird_step(3)\n"
    old = block.format(1).replace("_1", "")
    new = old.replace("third_step(3)", "third_step(4)")
    one, other = block.format(1), block.format(2)
    assert edited(one, old, new)[0] == one.replace("(3)", "(4)")
    assert refusal(f"{one}\n{other}", old, new).code == "NO_MATCH"


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        (
            "c = {\n    1: 'a',\n    2: 'b',\n}\n",
            "2→    1: 'a',\n3→    2: 'b',",
            "    1: 'a',\n    2: 'c',",
            "c = {\n    1: 'a',\n    2: 'c',\n}\n",
        ),
        ("codes:\n  404: gone\n", "2\t  404: gone", "  404: missing", "codes:\n  404: missing\n"),
        ("2024-01-01 start\n", "1\t2024-01-01 start", "2024-01-02 start", "2024-01-02 start\n"),
        ("x\n3\ny z\n", "3\ty z", "4", "x\n3\n4\n"),
        ("a = 1\nb = 2\n", "  1- a = 1\n  2: b = 2", "  1- a = 1\n  2: b = 3", "a = 1\nb = 3\n"),
    ],
)
def test_what_looks_like_a_number_in_new_text_is_its_own(text: str, old: str, new: str, expected: str) -> None:
    assert edited(text, old, new)[0] == expected


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("- [ ] task one\n", "- [] task one", "- [x] task one", "- [x] task one\n"),
        ('s.split(" ")\n', 's.split("")', 's.split(",")', 's.split(",")\n'),
        ('x = "".join(a)\n', 'x = " ".join(a)', 'x = ", ".join(a)', 'x = ", ".join(a)\n'),
    ],
)
def test_space_beside_what_comes_in_is_what_new_text_has(text: str, old: str, new: str, expected: str) -> None:
    assert edited(text, old, new)[0] == expected


def test_all_places_are_also_those_within_lines() -> None:
    text = "foo(a, b)\nx = foo(a, b)\nif foo(a, b):\n    foo(a, b)\n"
    assert edited(text, "foo(a,b)", "bar(a,b)", every=True)[0] == text.replace("foo", "bar")


def test_signs_that_repeat_in_long_lines_are_looked_for_in_bounded_steps() -> None:
    assert refusal(("( " * 9_000 + ")\n") * 100, "(" * 500 + ")", "b").code == "NO_MATCH"


def test_joined_characters_stay_joined() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert edited("say = 'hello'\n", "say\u200b = 'hello'", f"say = '{family}'")[0] == f"say = '{family}'\n"


def test_white_space_at_the_end_of_a_line_that_changes_stays_where_both_texts_leave_it_out() -> None:
    assert edited("Line one  \nline two\n", "Line one\nline two", "Line 1\nline two")[0] == "Line 1  \nline two\n"


def test_blank_lines_that_come_in_stay_as_they_are_where_lines_are_only_moved() -> None:
    text = "class A {\n\tone();\n\n\ttwo();\n}\n"
    result, _ = edited(text, "\t\tone();\n\n\t\ttwo();", "\t\tzero();\n\t\n\t\tone();\n\n\t\ttwo();")
    assert result == "class A {\n\tzero();\n\t\n\tone();\n\n\ttwo();\n}\n"


def test_the_white_space_of_a_blank_line_is_new_texts_unless_other_lines_tell_what_it_means() -> None:
    text = "void f() {\n\tone();\n\n\tif (a) {\n\t\ttwo();\n\t}\n}\n"
    result, _ = edited(text, "one();\n\nif (a) {\n\ttwo();", "one();\n        \nif (a) {\n\ttwo();")
    assert result == text.replace(";\n\n", ";\n        \n")
    result, _ = edited(text, "    one();\n\n    if (a) {", "    one();\n\n\n    \n    if (a) {")
    assert result == text.replace(";\n\n", ";\n\n\n\t\n")


def test_steps_of_spaces_become_tabs_where_the_file_has_tabs() -> None:
    text = "func a() {\n\tfoo()\n}\n\nfunc b() {\n\tif x {\n\t\tbar()\n\t}\n}\n"
    result, _ = edited(text, "foo() \n", "if y {\n    foo()\n}\n")
    assert "\tif y {\n\t\tfoo()\n\t}\n" in result


@pytest.mark.parametrize(("old", "new"), [("abc \\", "\\\nabc"), ("\\", "\\n"), ('a\\"b', "\\"), ("1\\", "2\\\\\\")])
def test_texts_that_end_in_a_backslash_are_just_texts(old: str, new: str) -> None:
    assert refusal("abc\n", old, new).code == "NO_MATCH"


def test_long_lists_and_alternating_lines_are_compared_in_bounded_steps() -> None:
    items = [f"a{number}" for number in range(3_000)]
    text = f"data = [{', '.join(items)}]\n"
    assert edited(text, f"data = [{','.join(items)}]", "data = [1]")[1].strategy == "whitespace-normalised"
    lines = [f"item_{number // 2}:" if number % 2 else "}" for number in range(1_981)]
    assert refusal("\n".join(lines), "\n".join(line.replace(":", ";") for line in lines), "x").code == "NO_MATCH"
    marks = "\n...\n".join(f"line {number} is here" for number in range(5_000))
    assert refusal(marks.replace("...", "out"), marks, marks.replace("here", "there")).code == "NO_MATCH"


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ('say("one\\ntwo")\nsay("one\ntwo")\n', 'say("one\\ntwo") ', "said", 'said\nsay("one\ntwo")\n'),
        ("1\tfirst line\nfirst line\n", "1\tfirst line ", "none", "none\nfirst line\n"),
        ('say(\\"hi\\")\nsay("hi")\n', 'say( \\"hi\\" )', "said", 'said\nsay("hi")\n'),
    ],
)
def test_the_most_literal_reading_comes_first(text: str, old: str, new: str, expected: str) -> None:
    assert edited(text, old, new)[0] == expected


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
        match_edit(text, old, "x\n", "shop.py", every=True)
    assert caught.value.code == "LIMIT_EXCEEDED"
    assert "more than" in refusal(text, old, "x\n").message
