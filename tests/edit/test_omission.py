"""A placeholder in the place of real lines is found; dots, prose and honest comments are not taken for one."""

from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest

from handrail.edit.omission import (
    find_placeholder,
    parse_mark,
    refuse_omission,
    refuse_omission_in_file,
)
from handrail.protocol.errors import ToolError


def cases(name: str) -> list[tuple[str, str]]:
    """Lines as models write them, and lines that look alike: `path | line`."""
    text = (Path(__file__).parent / "omission" / name).read_text()
    return [(path, line) for path, _, line in (row.partition(" | ") for row in text.splitlines())]


MARKS, HONEST = cases("placeholders.txt"), cases("honest.txt")
OLD = "begin(total)\nfirst = compute(1)\nsecond = compute(2)\nthird = compute(3)\nfinish(total)\n"
BODY = "    a = 1\n    b = a + 1\n    c = b + 1\n    return c\n"

CAUGHT = (
    (  # lines that both texts have by chance divide the lost lines from the placeholder
        "a.rs",
        "f {\n    a();\n    b();\n    c();\n    if y {\n        w(1);\n    }\n    d();\n}\n",
        "f {\n    for i in 0..9 {\n        w(1);\n    }\n    // ... (rest of the code stays the same)\n    d();\n}\n",
        5,
    ),
    (  # the bodies of overloads in the old text are no placeholders for what comes after them
        "a.py",
        "@overload\ndef f(x: int) -> int:\n    ...\n\n\ndef f(x):\n    y = g(x)\n    z = h(y)\n    return z\n",
        "@overload\ndef f(x: int) -> int: ...\n# ...\n    return z\n",
        3,
    ),
    (
        "a.py",
        "def f(x):\n    a = x + 1\n    b = a * 2\n    return b\n",
        "def f(x, y):\n    a = x + y\n    ...\n    return b\n",
        3,
    ),
    (
        "a.py",
        'def f():\n    """Does.\n\n    :param a: one\n    :param b: two\n    """\n',
        'def f():\n    """Does.\n    ...\n    """\n',
        3,
    ),
    (
        "a.go",
        "func f() {\n\ta()\n\tb()\n\treturn\n}\n",
        "func f() {\n\tlog()\n\t// ... existing code ...\n\treturn\n}\n",
        3,
    ),
    ("a.ts", "class A {\n  one() { return 1 }\n  two() { return 2 }\n}\n", "class A {\n  zero() {}\n  // ...\n}\n", 3),
    (
        "a.ts",
        "a();\nb();\n",
        "first();\nsecond();\nthird();\nfourth();\nfifth();\n// ... rest of the code remains unchanged\n",
        6,
    ),
    ("a.json", '{\n  "a": 1,\n  "b": 2,\n  "c": 3\n}\n', '{\n  "a": 2,\n  ...\n}\n', 3),
    ("a.css", "a { color: red }\nb { top: 0 }\n", "a { color: blue }\n/* ... */\n", 2),
    ("README", "One.\nTwo.\nThree.\n", "One!\n[rest of the file unchanged]\n", 2),
    ("a.c", "int a;\nint b;\nint c;\n", "int a;\n...\n", 2),
    ("a.py", "a = 1\nb = 2\nc = 3\n", "# Setup\n# rest of the code remains the same\n", 2),
    ("a.py", f"def f():\n{BODY}", "def f():\n    ...\n    return c + 1\n", 2),
    ("a.py", f"def f():\n{BODY}", "def f():\n    ...\n\n    return c + 1\n", 2),
    ("a.py", f"def f():\n{BODY}", "def f():\n    [...]\n    return c + 1\n", 2),
    ("a.py", BODY, "    ...\n    return c + 1\n", 1),
    ("a.py", BODY.lstrip(), "...\n    return c + 1\n", 1),
    ("a.py", "class A:\n    def f(self): pass\n    def g(self): pass\n", "class A:\n    x = 1\n    ...\n", 3),
    ("a.tsx", "<ul>\n  <li>a</li>\n  <li>b</li>\n</ul>\n", "<ul>\n  ...\n</ul>\n", 2),
    ("a.html", "<ul>\n  <li>a</li>\n  <li>b</li>\n</ul>\n", "<ul>\n  ...\n</ul>\n", 2),
    ("a.html", "<li>a</li>\n<li>b</li>\n<p>c</p>\n", "...\n<p>c</p>\n", 1),
    ("a.js", "if (a) {\n  b();\n  c();\n}\n", "if (a) {\n  // unchanged\n}\n", 2),
    ("a.js", "b();\nc();\nd();\nif (a) e();\n", "// unchanged\nif (a) e();\n", 1),
)
LEGITIMATE = (
    ("a.py", "def f():\n    return 1\n", "def f():\n    ...\n"),
    ("a.py", "class A(Protocol):\n    def f(self):\n        return 1\n", "class A(Protocol):\n    def f(self): ...\n"),
    ("a.py", 'def f():\n    """Does."""\n    return 1\n', 'def f():\n    """Does."""\n    ...\n'),
    ("a.py", "x: tuple[int, int]\ny = 1\n", "x: tuple[\n    int,\n    ...\n]\n"),
    ("a.py", '"""\n>>> a\n>>> b\n>>> c\n"""\n', '"""\n>>> for a in b:\n...     c\n...\n"""\n'),
    ("a.py", "a = 1\nb = 2\nc = 3\n", "# b and c were never used\na = 1\n"),
    ("a.py", "a = 1\nb = 2\n", "# removed: see the rest of the module for how it is done now\n"),
    ("a.py", "a = 1\n", "a = 1\n# ... existing code ...\n"),
    ("a.py", "", "# ... rest of the code unchanged ...\n"),
    ("a.py", "# ... existing code ...\na = 1\n", "# ... Existing code\nb = 1\n"),
    ("a.py", "# ... existing code\na()\n", "# ... rest of the existing code\na()\n"),
    ("a.js", "f(\n  a,\n  b\n);\n", "f(\n  ...a,\n  ...b\n);\n"),
    ("a.js", "/**\n * one\n * two\n */\n", "/**\n * app.use(x)\n *   // ....\n * app.get(y)\n */\n"),
    ("a.java", "/**\n * One.\n */\n", "/**\n * Two:\n * at A.b\n *  ..... (rest of trace)\n */\n"),
    ("a.rs", "/// one\n/// two\n/// three\nfn f() {}\n", "/// Leaves all of it\n/// unchanged.\nfn f() {}\n"),
    ("a.c", "int f(const char *a, ...);\nint g;\n", "int f(\n    const char *a,\n    ...\n);\n"),
    ("a.c", "if (a) { b(); c(); }\nd();\n", "if (a) {\n  // no change\n}\n"),
    ("a.ts", "old(1);\nold(2);\n", "const a = {\n  b: 1,\n  c: 2,\n  // ... other fields\n};\nuse(a);\n"),
    ("a.md", "Old text.\n", "```ts\nf(1);\ng(2);\n// ... existing code ...\nh(3);\n```\n"),
    ("a.md", "One.\nTwo.\n", "One.\n...\n"),
    ("a.yaml", "a: 1\nb: 2\nc: 3\n", "a: 1\n...\n"),
    ("a.py", '"""\n>>> f()\n1\n2\n3\n4\n"""\n', '"""\n>>> f()\n1\n...\n4\n"""\n'),
    ("a.py", ">>> f()\n1\n2\n", ">>> f()\nTraceback (most recent call last):\n...\nValueError\n"),
    ("a.py", "    a()\n    b()\n    c()\n    d()\n", "    if a == b:\n        # unchanged\n        return\n"),
    ("a.go", "\ta()\n\tb()\n\tc()\n\td()\n", "\tif a == b {\n\t\t// unchanged\n\t\treturn\n\t}\n"),
    ("a.py", f"def f():\n{BODY}\ndef g():\n    pass\n", "def f():\n    ...\n\ndef g():\n    pass\n"),
    ("a.py", f"{BODY}\ndef g():\n    pass\n", "    ...\n\ndef g():\n    pass\n"),
    ("a.py", f"{BODY.lstrip()}\n@g\ndef h():\n", "...\n\n@g\ndef h():\n"),
    ("a.py", f"{BODY.lstrip()}\n  async def h():\n", "...\n\n  async def h():\n"),
    ("a.tsx", "<b>\n  {a.title}\n</b>\n", "<b>\n  ...\n</b>\n"),
    ("a.html", "<pre>\n{\n  a: 1\n  b: 2\n  c: 3\n</pre>\n", "<pre>\n{\n  a: 1\n  ...\n</pre>\n"),
    ("a.html", "<b>\n  Waiting\n</b>\n", "<b>\n  ...\n</b>\n"),
    ("a.lua", "local a = {1, 2}\nlocal b\n", "local a = {\n  ...\n}\n"),
)


@pytest.mark.parametrize(("path", "mark"), MARKS)
def test_a_mark_in_the_place_of_real_lines_is_found(path: str, mark: str) -> None:
    found = find_placeholder(OLD, f"begin(total, 1)\n    {mark}\nfinish(total)\n", path)
    assert found is not None
    assert (found.line, found.text, found.lost) == (2, mark, 4)


@pytest.mark.parametrize(("path", "mark"), MARKS)
def test_the_same_mark_is_fine_where_no_line_goes(path: str, mark: str) -> None:
    assert find_placeholder(OLD, OLD.replace("second", f"{mark}\nsecond"), path) is None


@pytest.mark.parametrize(("path", "mark"), MARKS)
def test_a_mark_that_the_old_text_has_is_fine(path: str, mark: str) -> None:
    old = f"begin(total)\n{mark}\nfinish(total)\n"
    assert find_placeholder(old, f"begin(1)\n  {mark}\nend(total)\n", path) is None
    assert parse_mark(mark) is not None


@pytest.mark.parametrize(("path", "old", "new", "line"), CAUGHT)
def test_an_edit_that_leaves_lines_out_is_found(path: str, old: str, new: str, line: int) -> None:
    found = find_placeholder(old, new, path)
    assert found is not None
    assert found.line == line


@pytest.mark.parametrize(("path", "old", "new"), LEGITIMATE)
def test_an_honest_edit_passes(path: str, old: str, new: str) -> None:
    assert find_placeholder(old, new, path) is None
    assert find_placeholder(old, new, path, certain=True) is None


@pytest.mark.parametrize(("path", "line"), HONEST)
def test_an_honest_line_may_take_the_place_of_others(path: str, line: str) -> None:
    old = "a = 1\nb = 2\nc = 3\nd = 4\n"
    new = f"a = 1\n{line}\nd = 4\n"
    assert find_placeholder(old, new, path) is None
    assert find_placeholder(old, new, path, certain=True) is None


def test_a_whole_file_is_refused_for_words_and_not_for_dots() -> None:
    said, dots = (
        OLD.replace("second = compute(2)", "# ... existing code ..."),
        OLD.replace("second = compute(2)", "# ..."),
    )
    assert find_placeholder(OLD, said, "a.py", certain=True) == (3, "# ... existing code ...", 1)
    assert find_placeholder(OLD, dots, "a.py") == (3, "# ...", 1)
    assert find_placeholder(OLD, dots, "a.py", certain=True) is None


def test_lines_that_moved_are_not_lost() -> None:
    new = "first = compute(1)\n# ... rest of the code unchanged ...\nbegin(total)\n"
    assert find_placeholder("begin(total)\nfirst = compute(1)\n", new, "a.py") is None


def test_a_blank_line_or_bracket_between_two_hunks_does_not_divide_them() -> None:
    old = "class A {\n\n  one();\n  two();\n}\n"
    assert find_placeholder(old, "class A {\n  // ... existing methods ...\n\n}\n", "a.js") == (
        2,
        "// ... existing methods ...",
        2,
    )


def test_dots_in_a_comment_of_another_kind_are_no_part_of_the_comment_around_them() -> None:
    old = "/**\n * One.\n */\none();\ntwo();\n\n/**\n * Three.\n */\n"
    assert find_placeholder(old, "/**\n * One.\n // ...\n * Three.\n */\n", "a.js") == (3, "// ...", 2)
    assert find_placeholder(old, "/**\n * One.\n * ...\n * Three.\n */\n", "a.js") is None


@pytest.mark.parametrize(
    ("mark", "is_one"),
    [
        ("// rest of the code remains the same", True),
        ("// The rest of the buffer stays the same", False),
        ("rest of the code remains the same", False),
    ],
)
def test_a_comment_about_code_is_a_placeholder_however_much_comes_with_it(mark: str, is_one: bool) -> None:
    new = f"first();\nopen();\ncheck();\n{mark}\nlast();\n"
    assert (find_placeholder("first();\nsecond();\nlast();\n", new, "a.js") is not None) == is_one


@pytest.mark.parametrize(
    ("refuse", "where", "advice"),
    [
        (refuse_omission, "newText", "Send the real lines in its place, or leave out both it and them."),
        (
            refuse_omission_in_file,
            "content",
            "Send the whole content with the real lines, or change a part of the file with edit.",
        ),
    ],
)
def test_the_refusal_names_the_line_and_what_to_do(
    refuse: Callable[[str, str, str], None], where: str, advice: str
) -> None:
    with pytest.raises(ToolError) as caught:
        refuse(OLD, "begin(total)\n# ... rest unchanged\n", "a.py")
    assert caught.value.code == "OMITTED_TEXT"
    assert caught.value.message == (
        f"Line 2 of {where} is a placeholder ('# ... rest unchanged'): 4 lines of the file would be lost. "
        f"Nothing was changed. {advice} "
        "If the file needs this exact line, add it first, without removing anything."
    )
    assert caught.value.details == {"line": 2, "placeholder": "# ... rest unchanged", "lost": 4}


MANY = 100_000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\n", "x ... rest of the code unchanged " * 40_000),
        ("real line\n" * MANY, "".join(f"# ... existing code {number}\n" for number in range(MANY))),
        ("# ...\n" * MANY, "// ... existing code\n" * MANY),
        ("".join(f"{n}\n" for n in range(MANY)), "// ...\n" + "".join(f"{n}\n" for n in reversed(range(MANY)))),
        ("a\nb\n", ("# rest of " + "is are " * 26 + "\n") * MANY),
        ("a\nb\n", ("... " * 48 + "\n") * MANY),
        ("a\nb\n", ("{" * 90 + "..." + "}" * 90 + "\n") * MANY),
    ],
)
def test_any_text_is_looked_at_in_bounded_time(old: str, new: str) -> None:
    """Without its limits each of these takes minutes or more than the time that a test run has."""
    started = process_time()
    for certain in (False, True):
        found = find_placeholder(old, new, "a.js", certain=certain)
        assert (found.line if found else None) == (1 if old.startswith("real line") else None)
    assert process_time() - started < 30
