"""The golden files of the code tools: a source in each language, and its definitions, listed by hand.

The lists were written by reading the sources, before the tool saw them. A row has the lines, the kind, the definitions
around it, the name, the signature, and the first line of the documentation. Rows are indented as in the outline.
After `broken from LINE:` stand names that must be found there, in code that no parser accepts. After `missed:` stand
names that the grammar does not see.
"""

import re
from pathlib import Path
from typing import NamedTuple

from handrail.code.symbols import SourceFile, build_symbols
from handrail.protocol.text import truncate

FOLDER = Path(__file__).parent / "golden"
SOURCES = sorted(path for path in FOLDER.glob("*.txt") if not path.name.endswith(".symbols.txt"))
ANALYZED = Path(__file__).parent / "analysis"
_ROW = re.compile(
    r"(?P<indent> *)(?P<lines>[-\d]+) (?P<kind>\w+) .*? > (?P<name>.*?) \| (?P<text>.*?)(?: # (?P<doc>.*))?"
)
_MAX_DOC_CHARS = 80


class Golden(NamedTuple):
    """What a person found in a source."""

    rows: list[str]
    broken: set[str]
    broken_from: int
    missed: set[str]


def read_golden(source: Path) -> Golden:
    rows = source.with_name(source.name.replace(".txt", ".symbols.txt")).read_text("utf-8").splitlines()
    broken, start, missed = set[str](), 1 << 30, set[str]()
    if rows[-1].startswith("broken from "):
        head, _, names = rows.pop().partition(":")
        broken, start = set(names.split()), int(head.removeprefix("broken from "))
    if rows[-1].startswith("missed: "):
        missed = set(rows.pop().removeprefix("missed: ").split())
    return Golden(rows, broken, start, missed)


def list_rows(text: bytes, language: str) -> list[tuple[int, str, str]]:
    """The first line, the name and the row of each definition that the tool finds."""
    source = SourceFile(text, language)
    return [
        (
            one.line,
            one.name,
            f"{'  ' * definition.level}{one.line}-{one.end_line} {one.kind} {one.parent or '-'} > {one.name} | "
            + one.signature
            + (f" # {one.doc.partition(chr(10))[0]}" if one.doc else ""),
        )
        for definition, one in zip(source.definitions, build_symbols(source), strict=True)
    ]


def render_outline(rows: list[str]) -> list[str]:
    """The lines of the outline that follow from rows."""
    lines: list[str] = []
    for row in rows:
        found = _ROW.fullmatch(row)
        assert found is not None, row
        start, end = found["lines"].split("-")
        place = start if start == end else f"{start}–{end}"
        text = found["name"] if found["kind"] == "heading" else f"`{found['text']}`"
        doc = f" — {truncate(found['doc'], _MAX_DOC_CHARS)}" if found["doc"] else ""
        lines.append(f"{found['indent']}- {text} {place}{doc}")
    return lines
