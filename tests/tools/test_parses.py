"""A file that should parse and does not is written, and the result says what is wrong with it."""

import time
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.tools.parses import parse_problem

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
}
BAD = {
    "a.json": ('{"a": 1,}', "is not valid JSON: "),
    "b.json": ("", "is not valid JSON: "),
    "UPPER.JSON": ("{", "is not valid JSON: "),
    "deep.json": ("[" * 100_000, "is not valid JSON: "),
    "a.yaml": ("a:\n  - b\n c: d\n", "is not valid YAML: "),
    "tab.yml": ("a:\n\t- b\n", "in line 2"),
    "a.toml": ("a = ", "is not valid TOML: "),
    "b.toml": ("[a]\n[a]\n", "is not valid TOML: "),
    "a.md": ("---\ntitle: [\n---\n", "front matter is not valid YAML"),
    "b.md": ("---\ntitle: x\n", "front matter has no closing ---"),
    "c.md": ("---\ntitle: x\n----\n", "front matter has no closing ---"),
}


@pytest.mark.parametrize("path", GOOD)
def test_what_parses_or_need_not_has_no_warning(one: Handrail, path: str) -> None:
    assert one.write(path, GOOD[path]).warnings == ()


@pytest.mark.parametrize("path", BAD)
def test_what_does_not_parse_is_written_with_a_warning(one: Handrail, workspace: Path, path: str) -> None:
    content, problem = BAD[path]
    result = one.write(path, content)
    assert result.ok
    assert (workspace / path).read_text() == content
    (warning,) = result.warnings
    assert warning.startswith(f"{path} was written, but it")
    assert problem in warning
    assert len(warning) < 500


def test_yaml_that_refers_to_itself_is_not_unfolded() -> None:
    text = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    assert parse_problem("a.yaml", text) is None


def test_a_large_file_is_checked_soon() -> None:
    text = "".join(f"key{number}:\n  - a: {number}\n    b: [1, 2, 3]\n" for number in range(20_000))
    start = time.process_time()
    assert parse_problem("a.yaml", text) is None
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("path", "content"),
    [("a.toml", ".".join("a" * 100_000) + " =\n"), ("a.yaml", "[" * 200_000), ("a.md", f"---\n{'{' * 200_000}\n---\n")],
)
def test_what_a_parser_would_take_minutes_for_is_not_parsed(one: Handrail, path: str, content: str) -> None:
    """None of it is valid: a parser that had looked would have said so."""
    result = one.write(path, content)
    assert (result.ok, result.warnings) == (True, ())
