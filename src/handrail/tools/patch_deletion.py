"""Whether a file that a diff deletes is the one that the diff shows."""

import os
from collections.abc import Sequence

from handrail.edit.patch.hunks import FilePatch, Hunk, strip_byte_order_mark
from handrail.edit.patch.target import TextLines
from handrail.protocol.errors import ToolError
from handrail.tools.patch_tree import PatchFileState
from handrail.tools.text_file import TextFile, decode_text_file
from handrail.workspace.errors import clip_path
from handrail.workspace.file_state import Content
from handrail.workspace.text import find_byte_order_mark

_AGAIN = "Read it, then make the patch anew."


def check_deleted_content(held: PatchFileState, file: FilePatch) -> None:
    """NO_MATCH where a file holds something else than a diff removes, or a link leads elsewhere."""
    path = clip_path(file.path)
    if held.is_link:
        _refuse_other_link(held, file, path)
    elif held.data is None:
        message = f"{path} is larger than 32 MiB, too large to compare it with the patch. Use *** Delete File: instead."
        raise ToolError("LIMIT_EXCEEDED", message)
    else:
        _refuse_other_text(decode_text_file(held.data, path), file, path)


def adapt_hunks(text: TextFile, file: FilePatch) -> Sequence[Hunk]:
    """The hunks as they fit a text, which has no byte order mark any more."""
    return tuple(map(strip_byte_order_mark, file.hunks)) if find_byte_order_mark(text.file.encoding) else file.hunks


def _refuse_other_text(text: TextFile, file: FilePatch, path: str) -> None:
    hunks, lines = adapt_hunks(text, file), TextLines(text.text)
    if lines.lines != [line for hunk in hunks for line in hunk.old]:
        raise ToolError("NO_MATCH", f"{path} holds other lines than the patch removes. {_AGAIN}")
    if lines.ended == hunks[-1].old_open:
        ends = "ends with a newline" if lines.ended else "does not end with a newline"
        raise ToolError("NO_MATCH", f"{path} {ends}, and the patch says otherwise. {_AGAIN}")


def _refuse_other_link(held: PatchFileState, file: FilePatch, path: str) -> None:
    shown = "\n".join(line for hunk in file.hunks for line in hunk.old)
    state = held.slot.found.state
    if state is None or Content.from_bytes(os.fsencode(shown)).hash != state.hash:
        raise ToolError("NO_MATCH", f"{path} is a link, and does not lead where the patch shows. Look at it with ls.")
