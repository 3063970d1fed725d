"""What ls does: reads the folder and puts it in rows."""

from handrail.protocol.text import escape_unprintable
from handrail.tools.contract import Context, Output
from handrail.tools.ls import LsArguments, LsData, LsEntry
from handrail.workspace.directory import FolderListing, ListingEntry, list_tree
from handrail.workspace.errors import clip_path, to_tool_error
from handrail.workspace.ignore import read_ignore_rules

MAX_ENTRIES = 1_000
"""Most entries in one listing."""


def list_folder(context: Context, arguments: LsArguments, ignore: tuple[str, ...]) -> Output:
    """Lists a folder."""
    with context.workspace.open_folder(arguments.path) as opened:
        try:
            rules = read_ignore_rules(opened.root.descriptor, opened.relative, ignore)
            found = list_tree(opened.descriptor, arguments.depth, MAX_ENTRIES, rules)
        except OSError as error:
            raise to_tool_error(error, arguments.path) from None
        return _output(arguments, found, opened.real)


def _output(arguments: LsArguments, found: FolderListing, real: str) -> Output:
    shown = len(found.entries)
    content = "".join(f"{_line(entry)}\n" for entry in found.entries)
    truncated = not found.exact or shown < found.total
    warnings: tuple[str, ...] = ()
    if truncated:
        warnings = (f"Only {shown} entries are shown; list a folder inside, or use a smaller depth.",)
    of = f" of {'' if found.exact else 'at least '}{found.total}" if truncated else ""
    entries = tuple(
        LsEntry(path=escape_unprintable(e.path), kind=e.kind, size=e.size, note=e.note) for e in found.entries
    )
    return Output(
        summary=f"{shown}{of} {'entry' if shown == found.total == 1 else 'entries'} in {clip_path(arguments.path)}",
        content=content or "(empty)\n",
        data=LsData(path=real, entries=entries),
        truncated=truncated,
        meta={"returned": shown, "total": found.total, "total_is_lower_bound": not found.exact},
        warnings=warnings,
    )


def _line(entry: ListingEntry) -> str:
    path = escape_unprintable(entry.path)
    if entry.kind == "directory":
        return f"{path}/{f'  ({entry.note})' if entry.note else ''}"
    detail = format_size(entry.size) if entry.size is not None else entry.note or entry.kind
    return f"{path}  {detail}"


def format_size(size: int) -> str:
    """A number of bytes in units of 1,000: 1234 → 1.2 KB, 100 → 100 B."""
    amount = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
