"""Text that results of several tools share."""

from handrail.protocol.text import truncate_middle

OUTPUT = "@output/"
"""Start of a reference to the stored output of an earlier call."""
MAX_TEXT_BYTES = 32 * 1024 * 1024
"""Largest text and file that a tool edits: several copies of it are in memory."""


def format_count(number: int, noun: str) -> str:
    """1 file, 2,000 files, 3 matches."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('ch') else 's'}"


def build_output_reference(call_id: str) -> str:
    """The path by which `read` pages the stored output of a call."""
    return f"{OUTPUT}{call_id}"


def truncate_with_reference(text: str, budget: int, reference: str) -> str:
    """The beginning and the end of a text, with a line between them that names the stored output."""
    note = f"\n… {{}} of {len(text)} characters are not shown; read {reference} for all of it …\n"
    return truncate_middle(text, budget, note)
