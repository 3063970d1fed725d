"""The beginning and the end of a text that is too long to be shown whole."""

OUTPUT = "@output/"


def build_output_reference(call_id: str) -> str:
    """How `read` is told which kept text it should read."""
    return f"{OUTPUT}{call_id}"


def truncate_with_reference(text: str, budget: int, reference: str) -> str:
    """The beginning and the end of a text, with a line in between that says how to see the rest: within the budget."""
    note = f"\n… {{}} of {len(text)} characters are not shown; read {reference} for all of it …\n"
    return truncate_middle(text, budget, note)


def truncate_middle(text: str, budget: int, note: str) -> str:
    """A quarter of the budget for the beginning, the rest for the end; `{}` in the note is how much is left out."""
    room = budget - len(note.format(len(text)))
    head, tail = room // 4, len(text) - (room - room // 4)
    # Between lines where a line ends near the place, so that a long line does not push everything else out.
    head = text.rfind("\n", head // 2, head) + 1 or head
    tail = text.find("\n", tail, tail + room // 4) + 1 or tail
    return f"{text[:head]}{note.format(tail - head)}{text[tail:]}"
