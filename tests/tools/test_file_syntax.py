"""A file that should parse and does not is written, and the result says what is wrong with it."""

import sys
import threading
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.tools.file_commit import find_syntax_problem

PYTHON = f"Python {sys.version_info.major}.{sys.version_info.minor}"
GOOD = {
    "a.json": '{"a": [1, 2, {"b": null}]}\n',
    "a.yaml": "a:\n  - b: 1\n---\nsecond: document\n",
    "a.yml": "",
    "a.toml": '[a]\nb = "c"\n',
    "a.md": "---\ntitle: x\n---\n# Text\n",
    "b.md": "# no front matter\n---\n",
    "c.md": "---\n---\nempty front matter\n",
    "d.md": "---\r\ntitle: x\r\n---\r\n",
    "e.md": "----\na rule\n",
    "f.mdx": "",
    "g.markdown": "---\ntitle: a --- b\n...\n",
    "a.txt": "{ not: [json",
    "json": "{",
    ".json/file": "{",
    "a.py": "def f(x: int) -> None: ...\n",
    "b.py": "\ufeffx = 1\n",
    "c.py": 'pattern = "\\d"\nassert (x, "always")\nx is 1\n',
    "d.pyi": "class A:\n    x: int\n",
    "e.py": "\r\n".join(("if x:", "    y = 1", "")),
    "a.js": "#!/usr/bin/env node\nconst a = <b c={...d}>{e}</b>;\n",
    "b.mjs": "export default async () => { for await (const x of y) {} };\n",
    "c.cjs": "module.exports = { ...a, b: `${c}` };\n",
    "d.jsx": "const a = () => <><B /></>;\n",
    "a.ts": "const a = <T,>(b: T): b is string => !!(<any>b);\n",
    "b.d.ts": "declare module 'x' { export type A = Partial<B>; }\n",
    "c.tsx": "const a = <A<B> c={(d: E) => d!} />;\n",
    "digits.json": f'{{"a": {"9" * 5_000}}}\n',
    "digits.toml": f"a = {'9' * 5_000}\n",
    "deep.json": "[" * 50_000 + "]" * 50_000,
    "deep.toml": f"a = {'[' * 9_000}{']' * 9_000}\n",
    "helm.yaml": "a:\n{{- if .Values.b }}\n  b: {{ .Values.b }}-c\n{{- end }}\n",
    "jinja.yml": '{% for a in b %}\n- {{ a }}: "c"\n{% endfor %}\n',
    "front.md": "---\ntitle: {{ title }} of {{ name }}\n---\n",
    "babel.config.json": "{\n  // why\n}\n",
    ".babelrc.json": "{/* why */}\n",
    "tsconfig.json": "{\n  // comments are fine here\n}\n",
    "tsconfig.build.json": "{/* here too */}\n",
}
BAD = {
    "a.json": ('{"a": 1,}', "is not valid JSON: "),
    "b.json": ("", "is not valid JSON: "),
    "UPPER.JSON": ("{", "is not valid JSON: "),
    "digits.json": (f'{{"a": {"9" * 5_000},}}', "is not valid JSON: "),
    "digits.toml": (f"a = {'9' * 400}.", "is not valid TOML: "),
    "a.yaml": ("a:\n  - b\n c: d\n", "is not valid YAML: "),
    "tab.yml": ("a:\n\t- b\n", "in line 2"),
    "workflow.yml": ("a: ${{ b }}\nc:\n  - d\n e: f\n", "is not valid YAML: "),
    "ansible.yml": ('a: "{{ b }}"\nc:\n  - d\n e: f\n', "is not valid YAML: "),
    "a.toml": ("a = ", "is not valid TOML: "),
    "b.toml": ("[a]\n[a]\n", "is not valid TOML: "),
    "a.md": ("---\ntitle: [\n---\n", "front matter is not valid YAML"),
    "b.md": ("---\ntitle: x\n", "front matter has no closing ---"),
    "c.md": ("---\ntitle: x\n----\n", "front matter has no closing ---"),
    "a.py": ("def f():\n    return (1\n", f"is not valid {PYTHON}: '(' was never closed in line 2"),
    "b.py": ("if x:\ny = 1\n", "expected an indented block after 'if' statement on line 1 in line 2"),
    "c.py": ("x = 1\n\tif y: pass\n", "unexpected indent in line 2"),
    "d.pyi": ("class A\n    x: int\n", "in line 1"),
    "e.py": ("(" * 100_000, f"is not valid {PYTHON}: too many nested parentheses"),
    "f.py": ("x = '\0'\n", "it is not text"),
    "a.js": ("function f() {\n  return 1;\n", "is not what tree-sitter knows as JavaScript: } is missing in line 2"),
    "b.jsx": ("const a = <b>\n", "is not what tree-sitter knows as JavaScript: "),
    "a.ts": ("const a: = 1;\n", "is not what tree-sitter knows as TypeScript: line 1"),
    "b.tsx": ("const a = 1;\nconst b = <c;\n", "is not what tree-sitter knows as TSX: "),
}
KINDS = {
    "a.json": ('{"a": 1}\n', '{"a": 1,}\n'),
    "a.yaml": ("a: 1\n", "a: [1\n"),
    "a.toml": ("a = 1\n", "a = \n"),
    "a.md": ("---\na: 1\n---\n", "---\na: [1\n---\n"),
    "a.py": ("a = (1)\n", "a = (1\n"),
    "a.js": ("a((1));\n", "a((1);\n"),
    "a.ts": ("let a: A = 1;\n", "let a: = 1;\n"),
    "a.tsx": ("let a = <a />;\n", "let a = <a >;\n"),
}
"""One text that parses and one that does not, of each kind."""

SCRIPTS = (
    ("a.tsx", "const a = <p>x & y</p>;"),
    ("a.jsx", "const a = <p title='b & c'>&nbsp;x && y&z &</p>, b = c & d && e;"),
    ("a.js", "class A { accessor x = 1; static accessor #y; @b accessor 'z' }"),
    ("a.ts", "abstract class A { abstract accessor x: number; declare y: string }"),
    ("a.ts", "interface A<in out T, in U, out V = never> {}"),
    ("a.ts", "type A<\n  /** @ts-ignore */\n  in T,\n  out U\n> = (a: T) => U;"),
    ("a.ts", "export default abstract class { abstract f(): void }"),
    ("a.ts", "export default abstract class extends A {}"),
    ("a.js", 'import defer * as a from "a"; import source b from "b";'),
    ("a.ts", 'const a = await import.defer("a"), b = import.source("b");'),
    ("a.ts", 'export type * from "a";\nexport type * as b from "b";'),
    ("a.ts", 'export * from "a" with { type: "json" };'),
    ("a.ts", "const a = b<c>?.(d);"),
    ("a.tsx", "const a = f<typeof import('b')>();\nconst c = f<\n  typeof import(\n    \"d\",\n  )\n>();"),
    ("a.ts", "interface A {\n  a?: import('b').C[]\n}"),
    ("a.ts", "interface A {\n  (a: string): B\n  // any\n  <T>(a: T): B[]\n  <T>(a: T, b: T): B\n}"),
    (
        "a.ts",
        "interface A {\n  // f(a)\n  <\n    T\n  >(a: T): B<\n    C\n  >\n\n  // f()\n  <\n    T\n  >(): B\n}",
    ),
    (
        "a.tsx",
        "interface A {\n  (a: string): B\n  <T>(a: T): B\n}\nconst f = () =>\n  <A>\n    x & y\n    <B />\n  </A>;",
    ),
    ("a.ts", "interface A {\n  a?: B\n  in2?: C\n  in?: D\n}"),
    ("a.ts", "interface A<in T> {\n  a: B; // (c)\n  input: D;\n  e: F; // (g)\n  <T>(): B;\n}"),
)
"""Valid programs that the grammars do not know."""


@pytest.mark.parametrize(("path", "text"), SCRIPTS)
def test_a_script_that_only_the_grammar_does_not_know_has_no_warning(path: str, text: str) -> None:
    assert find_syntax_problem(path, f"{text}\n".encode()) is None


@pytest.mark.parametrize(("path", "text"), SCRIPTS)
def test_an_error_below_what_the_grammar_does_not_know_is_told_with_its_line(path: str, text: str) -> None:
    problem = find_syntax_problem(path, f"{text}\n\nlet z = [1, 2;\n".encode())
    assert problem is not None
    assert f"line {text.count(chr(10)) + 3}" in problem


@pytest.mark.parametrize("path", GOOD)
def test_what_parses_or_need_not_has_no_warning(one: Handrail, path: str) -> None:
    assert one.write(path, GOOD[path]).warnings == ()


@pytest.mark.parametrize("path", BAD)
def test_what_does_not_parse_is_written_with_a_warning(one: Handrail, workspace: Path, path: str) -> None:
    content, problem = BAD[path]
    result = one.write(path, content)
    assert result.ok
    assert (workspace / path).read_bytes() == content.encode()
    (warning,) = result.warnings
    assert warning.startswith(f"{path} was written, but it")
    assert problem in warning
    assert len(warning) < 500


def test_yaml_that_refers_to_itself_is_not_unfolded() -> None:
    text = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    assert find_syntax_problem("a.yaml", text.encode()) is None


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.toml", ".".join("a" * 100_000) + " =\n"),
        ("a.yaml", "[" * 200_000),
        ("a.md", f"---\n{'{' * 200_000}\n---\n"),
        ("a.json", "[" * 100_000),
    ],
)
def test_what_a_parser_is_not_made_for_is_not_parsed(one: Handrail, path: str, content: str) -> None:
    """None of it is valid: a parser that had looked would have said so."""
    result = one.write(path, content)
    assert (result.ok, result.warnings) == (True, ())


@pytest.mark.parametrize("path", KINDS)
def test_what_parsed_before_is_told_when_it_no_longer_does(one: Handrail, path: str) -> None:
    good, bad = KINDS[path]
    assert one.write(path, good).warnings == ()
    (written,) = one.write(path, bad).warnings
    assert written.startswith(f"{path} was changed and no longer parses: it")
    assert one.edit(path, bad, good).warnings == ()
    (edited,) = one.edit(path, good, bad).warnings
    assert edited == written


@pytest.mark.parametrize("path", KINDS)
def test_what_did_not_parse_before_is_no_news(one: Handrail, workspace: Path, path: str) -> None:
    bad = KINDS[path][1]
    (workspace / path).write_text(bad)
    assert one.edit(path, "1", "2").warnings == () if "1" in bad else True
    assert one.write(path, f"{bad}{bad}").warnings == ()


def test_an_empty_file_is_as_good_as_none(one: Handrail, workspace: Path) -> None:
    (workspace / "a.json").write_text("\n")
    (warning,) = one.write("a.json", "{").warnings
    assert warning.startswith("a.json was written, but it is not valid JSON")


def test_bytes_that_are_no_text_did_not_parse(one: Handrail, workspace: Path) -> None:
    (workspace / "a.json").write_bytes(b"\0\1\2")
    assert one.write("a.json", "{").warnings == ()


def test_json_with_comments_may_have_them(one: Handrail, workspace: Path) -> None:
    (workspace / "settings.json").write_text('{\n  // why\n  "a": 1\n}\n')
    assert one.edit("settings.json", "1", "2").warnings == ()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_encoding_does_not_matter(one: Handrail, workspace: Path, encoding: str) -> None:
    (workspace / "a.py").write_bytes("ä = (1)\r\n".encode(encoding))
    assert one.edit("a.py", "1", "2").warnings == ()
    (warning,) = one.edit("a.py", "2)", "2").warnings
    assert "'(' was never closed in line 1" in warning


HOSTILE: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: "(" * n,
    "parentheses that are closed": lambda n: "(" * n + ")" * n,
    "minus": lambda n: "-" * n + "1",
    "not": lambda n: "not " * n + "x",
    "plus": lambda n: "+".join("x" * n),
    "attributes": lambda n: ".".join("x" * n),
    "calls": lambda n: "x" + "()" * n,
    "subscripts": lambda n: "x" + "[0]" * n,
    "lambda": lambda n: "lambda:" * (n // 2) + "0",
    "conditions": lambda n: "x if x else " * (n // 3) + "x",
    "powers": lambda n: "**".join("x" * n),
    "elif": lambda n: "if x: pass\n" + "elif x: pass\n" * (n // 3),
    "indentation": lambda _: "".join(f"{' ' * depth}if x:\n" for depth in range(900)),
    "formatted strings": lambda n: 'f"{' * n,
    "escapes": lambda n: f'"{chr(92)}d"\n' * n,
    "digits": lambda n: "1" * n,
    "nested brackets that break": lambda _: "{a:" * 99 + "b c" + "}" * 99,
    "arrows": lambda n: "(a)=>" * n,
    "tags": lambda n: "<a>" * n,
    "templates": lambda n: "`${" * n,
    "generics": lambda n: "a<b<" * n,
    "no program at all": lambda n: "@#$ % ^ & \\ " * (n // 3),
    "quotes": lambda n: "'" * n,
    "NUL": lambda n: "\0" * n,
    "one long line": lambda _: "x" * 500_000,
    "other planes": lambda n: "é😀\u2028" * (n // 2),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_nothing_that_a_file_can_hold_harms_the_parsers(
    kind: str, capfd: pytest.CaptureFixture[str], deep: bool
) -> None:
    """Each of these has brought down a parser, or kept one busy for minutes, somewhere."""
    data, problems = HOSTILE[kind](60_000 if deep else 20_000).encode(), list[str | None]()

    def check() -> None:  # in a thread, which has less room for recursion
        problems.extend(find_syntax_problem(path, data) for path in ("a.py", "a.js", "a.tsx"))

    other = threading.Thread(target=check)
    other.start()
    other.join()
    assert len(problems) == 3
    assert all(problem is None or len(problem) < 400 for problem in problems)
    assert capfd.readouterr() == ("", "")


def test_a_file_that_is_very_large_is_not_parsed() -> None:
    for path in ("a.py", "a.ts", "a.yaml", "a.json", "a.toml"):
        assert find_syntax_problem(path, b"{" * (8 * 1024 * 1024 + 1)) is None


def test_warnings_of_python_are_neither_shown_nor_errors() -> None:
    text = b'x = "\\d"\ny = 1if x else 2\n'
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert find_syntax_problem("a.py", text) is None
        assert caught == []
        warnings.simplefilter("error")
        assert find_syntax_problem("a.py", text) is None
        with pytest.raises(SyntaxError):
            compile(text, "another name", "exec")


def test_parsing_scripts_leaves_nothing_behind() -> None:
    """The binding has kept every page it was given, and freed numbers that were in use."""
    data = ("f(a, b);\n" * 3_000 + "f((a);\n").encode()
    assert find_syntax_problem("a.js", data)  # what is loaded for the first time stays
    tracemalloc.start()
    try:
        for _ in range(30):
            assert (
                find_syntax_problem("a.js", data)
                == "it is not what tree-sitter knows as JavaScript: ) is missing in line 3001"
            )
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < len(data)


@pytest.mark.parametrize("missing", ["tree_sitter", "tree_sitter_javascript", "tree_sitter_typescript"])
def test_without_the_extra_scripts_are_not_parsed(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    assert (find_syntax_problem("a.js", b"(") is None) == (missing != "tree_sitter_typescript")
    assert (find_syntax_problem("a.ts", b"(") is None) == (missing != "tree_sitter_javascript")
