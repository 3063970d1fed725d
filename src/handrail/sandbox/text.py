"""The text of a command, as a shell is given it."""

import os

from handrail.protocol.errors import ToolError

MAX_ARGUMENT_BYTES = (1 << 17) - 1
"""Bytes that the kernel takes as one argument."""


def check_text(text: str) -> None:
    """Refuses a text that cannot be handed to a shell."""
    if "\0" in text:
        raise ToolError("INVALID_ARGUMENT", "The command has a NUL character in it. Leave it out.")
    try:
        size = len(os.fsencode(text))
    except UnicodeEncodeError:
        raise ToolError("INVALID_ARGUMENT", "The command has half a character in it, which no text has.") from None
    if size > MAX_ARGUMENT_BYTES:
        raise ToolError(
            "LIMIT_EXCEEDED",
            f"The command has {size:,} bytes, and a shell takes {MAX_ARGUMENT_BYTES:,}."
            " Write it to a file and run that.",
        )
