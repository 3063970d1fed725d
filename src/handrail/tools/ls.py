"""The tool ls."""

from functools import partial
from typing import Annotated

from msgspec import Meta

from handrail.protocol.text import escape_unprintable
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.tool import Context, Output, Tool, Touches
from handrail.workspace.directory import FolderListing, ListingEntry, list_tree
from handrail.workspace.errors import to_tool_error
from handrail.workspace.ignore import read_ignore_rules
from handrail.workspace.roots import clip_path

MAX_ENTRIES = 1_000


class LsArguments(Arguments, frozen=True):
    """The arguments of ls."""

    path: Annotated[str, Meta(description="Folder to list, relative to the workspace; . is the workspace.")]
    depth: Annotated[int, Meta(ge=1, le=20, description="How many levels to show.", extra={"unit": "levels"})] = 1


class LsEntry(Wire, frozen=True):
    """One name."""

    path: str
    kind: str
    size: int | None = None
    note: str | None = None


class LsData(Wire, frozen=True, omit_defaults=False):
    """The listing."""

    path: str
    entries: tuple[LsEntry, ...]


LS = ToolSpec(
    name="ls",
    title="List",
    description=(
        "List a folder, directories first, with sizes. With depth, also what is below; "
        "ignored folders (.git, node_modules, build output, .gitignore) are named but not entered."
    ),
    arguments=LsArguments,
    data=LsData,
    permissions=("fs.read",),
    auto_execute=True,
    plain_arguments=("path",),
    layer="base",
    stage="look",
    intent="list a folder",
)


def build_ls_tool(ignore: tuple[str, ...] = ()) -> Tool:
    """The tool ls. `ignore` adds patterns to the built-in list."""
    return Tool(LS, partial(_list_folder, ignore), lambda arguments: Touches(reads=(arguments.path,)))


def _list_folder(ignore: tuple[str, ...], context: Context, arguments: LsArguments) -> Output:
    with context.workspace.open_folder(arguments.path) as opened:
        try:
            rules = read_ignore_rules(opened.root.descriptor, opened.relative, ignore)
            found = list_tree(opened.descriptor, arguments.depth, MAX_ENTRIES, rules)
        except OSError as error:
            raise to_tool_error(error, arguments.path) from None
        return _build_output(arguments, found, opened.real)


def _build_output(arguments: LsArguments, found: FolderListing, real: str) -> Output:
    shown = len(found.entries)
    content = "".join(f"{_render_entry(entry)}\n" for entry in found.entries)
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


def _render_entry(entry: ListingEntry) -> str:
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
