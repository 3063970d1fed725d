"""The golden files of the code tools: a source in each language, and its definitions, checked line by line."""

from pathlib import Path

from handrail.code.symbols import Symbol

FOLDER = Path(__file__).parent / "golden"
SOURCES = sorted(path for path in FOLDER.glob("*.txt") if not path.name.endswith(".symbols.txt"))


def read_expected(source: Path) -> str:
    return source.with_name(source.name.replace(".txt", ".symbols.txt")).read_text("utf-8")


def render(symbols: list[Symbol]) -> str:
    rows = (
        f"{one.line}-{one.end_line} {one.kind} {one.parent or '-'} > {one.name} | {one.signature}"
        + (f" # {one.doc.partition(chr(10))[0]}" if one.doc else "")
        for one in symbols
    )
    return "\n".join(rows) + "\n"
