"""Text that results of several tools share."""

MAX_TEXT_BYTES = 32 * 1024 * 1024
"""Largest text and file that a tool edits: several copies of it are in memory."""


def format_count(number: int, noun: str) -> str:
    """1 file, 2,000 files, 3 matches."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('ch') else 's'}"
