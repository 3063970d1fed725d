"""Text that results of several tools share."""

OUTPUT = "@output/"
"""Start of a reference to the stored output of an earlier call."""


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


def truncate_middle(text: str, budget: int, note: str) -> str:
    """A quarter of the budget is for the beginning, the rest for the end. `{}` in the note is what is left out."""
    room = budget - len(note.format(len(text)))
    head, tail = room // 4, len(text) - (room - room // 4)
    # Cut at the end of a line if one is near.
    head = text.rfind("\n", head // 2, head) + 1 or head
    tail = text.find("\n", tail, tail + room // 4) + 1 or tail
    return f"{text[:head]}{note.format(tail - head)}{text[tail:]}"
