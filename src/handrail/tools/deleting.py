"""What delete does: looks at the file, keeps it for undo, removes it."""

from handrail.changes.carrying import KEPT_WHOLE
from handrail.edit.diff import Diff, unified_diff
from handrail.protocol.permission import Preview
from handrail.tools.contract import Context, Output, Seen
from handrail.tools.delete import DeleteArguments, DeleteData
from handrail.tools.saving import Records
from handrail.tools.slots import Looker, Slot, There
from handrail.tools.together import Becomes, change_together
from handrail.workspace.errors import clipped
from handrail.workspace.text import decoded

NO_DIFF = Diff("", 0, 0)


def delete(context: Context, arguments: DeleteArguments, seen: Seen, records: Records) -> Output:
    """Deletes the file."""
    slot = _look(context, arguments, seen, records)
    gone = removal(slot)
    made = change_together(records, context, "delete", f"delete {slot.real}", [gone])
    lines = f" −{gone.diff.removed}" if gone.diff.removed else ""
    summary = f"Deleted {_noun(slot)}{clipped(arguments.path)}{lines}"
    return Output(
        summary=summary,
        content=f"{summary}.\n",
        data=DeleteData(
            path=slot.real,
            kind="link" if slot.is_link else "file",
            size=slot.state.size,
            before=slot.state.hash,
            diff=gone.diff.text,
        ),
        meta={"unread": slot.unread},
        files_changed=(slot.real,),
        warnings=(f"It was deleted, but: {made.problem}",) if made.problem else (),
        changes=made.changes,
    )


def diff_before(context: Context, arguments: DeleteArguments, seen: Seen, records: Records) -> Preview:
    """What would go."""
    slot = _look(context, arguments, seen, records)
    diff = removal(slot).diff
    return Preview(kind="diff", text=diff.text or f"({_noun(slot)}{slot.real} goes)\n", truncated=diff.truncated)


def removal(slot: Slot) -> Becomes:
    """A path that goes, with the difference that makes where it is text."""
    now = slot.found.current
    if now is None:
        return Becomes(slot, None, None, NO_DIFF)
    text = decoded(now.data) if now.data is not None and len(now.data) <= KEPT_WHOLE else None
    diff = unified_diff(text.text, None, slot.real) if text is not None else NO_DIFF
    return Becomes(slot, None, None, diff, binary=text is None)


def _look(context: Context, arguments: DeleteArguments, seen: Seen, records: Records) -> There:
    return Looker(context, seen, records, "deleting").to_remove(arguments.path)


def _noun(slot: Slot) -> str:
    return "the link " if slot.is_link else ""
