"""How a help is laid out: in lines that the terminal need not break."""

import os
from argparse import RawDescriptionHelpFormatter


class Formatter(RawDescriptionHelpFormatter):
    """How argparse lays a help out, with names left whole."""

    def __init__(self, prog: str) -> None:
        # Left to itself, the formatter imports shutil to measure the terminal, even when no help is printed.
        super().__init__(prog, width=measure_help_width(), max_help_position=28)

    def _split_lines(self, text: str, width: int) -> list[str]:
        from textwrap import wrap  # noqa: PLC0415  as argparse has it

        return wrap(" ".join(text.split()), width, break_on_hyphens=False)


def format_hanging(head: str, text: str) -> str:
    """The text behind its head, in lines that the terminal need not break. No name is broken at its hyphen."""
    lines, width = [head], measure_help_width()
    for word in text.split():
        if len(lines[-1]) + len(word) > width and lines[-1].strip():
            lines.append(" " * len(head))
        lines[-1] += f"{word} "
    return "\n".join(line.rstrip() for line in lines)


def measure_help_width() -> int:
    """How wide a help is."""
    try:
        return max(60, min(120, int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)))
    except (OSError, ValueError):
        return 80
