"""What a command's output shows of its overlay: things that fail under one and not without, in words that help."""

_ACROSS = ("invalid cross-device link", "cross-device link not permitted")
"""As the system and node.js say it. The bare EXDEV may be a line of source."""
_NOT_OURS = ("value too large for defined data type",)
_MAX_READ_CHARS = 200_000
"""Characters of the end of an output: what went wrong is said there."""


def list_overlay_hints(printed: str) -> tuple[str, ...]:
    """One sentence for each thing; nothing where the output shows none."""
    end = printed[-_MAX_READ_CHARS:].lower()
    found: list[str] = []
    if any(sign in end for sign in _ACROSS):
        found.append(_FOLDER_MOVED)
    if any(sign in end for sign in _NOT_OURS):
        found.append(_OF_ANOTHER)
    return tuple(found)


_FOLDER_MOVED = (
    "A folder that was there before cannot be renamed in one piece in the overlay that the command ran in"
    " (Invalid cross-device link): move it with `mv`, which copies it, or copy it and remove the old one."
)
_OF_ANOTHER = (
    "A file or folder that belongs to another user or group cannot be changed in the overlay that the command ran in"
    " (Value too large for defined data type): copy it, change the copy, and put that in its place."
)
