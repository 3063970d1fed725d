"""Tables of text in columns."""

from collections.abc import Callable, Iterable, Sequence

from handrail.protocol.text import to_one_line
from handrail.terminal.style import measure_painted, pad_painted, wrap_line


def layout_table(
    rows: Iterable[Sequence[str]], columns: int | None, paint_cell: Callable[[int, str], str] = lambda _, cell: cell
) -> str:
    """Renders rows in columns without borders. `paint_cell` gets the number of the column, from 0."""
    lines = [[paint_cell(column, to_one_line(cell)) for column, cell in enumerate(row)] for row in rows]
    widths = [max(map(measure_painted, column)) for column in zip(*lines, strict=True)]
    indent = sum(width + 2 for width in widths[:-1])
    return "".join(wrap_line("  ".join(map(pad_painted, row, widths)).rstrip(), columns, indent) for row in lines)
