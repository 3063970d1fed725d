"""The file tools of Claude Code: what they translate to, with their answers."""

import json
import re
from collections.abc import Iterator
from typing import Any

from handrail.dialects.dialect import Answered, Canonical, Surface
from handrail.dialects.render import build_path_filter, drop_none, find_type_glob, list_hunks, number_lines
from handrail.protocol.errors import ToolError
from handrail.tools.search_text import SearchTextData

_MAX_FILES = 100
_MAX_NOTEBOOK_BYTES = 8 * 1024 * 1024
_RANGE = re.compile(r"[1-9]\d{0,5}(-[1-9]\d{0,5})?")
_PAGE = re.compile(r"(?m)^--- page (\d+) of \d+ ---\n")


def read(args: Any, _: Surface) -> Canonical:
    if args.pages is not None and not _RANGE.fullmatch(args.pages):
        raise ToolError("INVALID_ARGUMENT", f'pages must be such as "3" or "1-5", got {args.pages[:20]}')
    whole = args.pages is not None or args.file_path.endswith(".ipynb")
    limit = 10_000 if whole else min(int(args.limit), 10_000)
    return "read", {"path": args.file_path, "offset": 1 if whole else int(args.offset or 1), "limit": limit}


def show_read(one: Answered) -> tuple[str, dict[str, Any]]:
    path, meta = one.surface.to_absolute(one.data.path), one.result.meta
    if one.result.attachments:
        picture = one.result.attachments[0]
        file = {"base64": picture.content, "type": picture.mime, "originalSize": one.data.size}
        return one.content, {"type": "image", "file": file}
    if path.endswith(".ipynb") and (cells := _parse_cells(one.content)) is not None:
        text = "\n".join(
            f'<cell id="{cell["cell_id"]}">{cell["source"]}</cell id="{cell["cell_id"]}">' for cell in cells
        )
        return text, {"type": "notebook", "file": {"filePath": path, "cells": cells}}
    content = one.content if one.args.pages is None else _pick_pages(one.content, one.args.pages)
    first = one.data.first_line or 1
    numbered = (
        number_lines(one, lambda number, _, line: f"{number:>6}\t{line}") if one.args.pages is None else [content]
    )
    text = "\n".join(numbered)
    if meta.next_offset is not None:
        last = meta.next_offset - 1
        text += f"\n\n[Showing lines {first}-{last} of {meta.total or 'more'}; next offset {meta.next_offset}]"
    shown = drop_none(truncatedByTokenCap=True if meta.next_offset is not None else None)
    file = {
        "filePath": path,
        "content": content,
        "numLines": meta.returned,
        "startLine": first,
        "totalLines": meta.total,
    }
    return text or "(The file is empty.)", {"type": "text", "file": file | shown}


def _pick_pages(content: str, pages: str) -> str:
    first, _, last = pages.partition("-")
    parts = _PAGE.split(content)[1:]
    wanted = range(int(first), int(last or first) + 1)
    return "".join(text for number, text in zip(parts[::2], parts[1::2], strict=True) if int(number) in wanted)


def _parse_cells(text: str) -> list[dict[str, Any]] | None:
    try:
        cells = json.loads(text)["cells"]
        return [
            {
                "cell_id": cell.get("id", f"cell-{number}"),
                "cellType": cell["cell_type"],
                "source": "".join(cell["source"]),
                "outputs": cell.get("outputs", []),
            }
            for number, cell in enumerate(cells)
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def edit_notebook(args: Any, surface: Surface) -> Canonical:
    """The whole new notebook: its JSON with one cell replaced, inserted or deleted."""
    data = surface.read_small_file(args.notebook_path, _MAX_NOTEBOOK_BYTES)
    try:
        notebook: dict[str, Any] = json.loads(data)
        cells: list[dict[str, Any]] = notebook["cells"]
        ids = [cell.get("id", f"cell-{number}") for number, cell in enumerate(cells)]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ToolError("INVALID_ARGUMENT", f"{args.notebook_path} is not a notebook. Nothing was changed.") from None
    if args.cell_id is not None and args.cell_id not in ids:
        raise ToolError("NO_MATCH", f"There is no cell {args.cell_id[:40]}; there are {', '.join(ids[:50])}.")
    if args.edit_mode == "insert":
        if args.cell_type is None:
            raise ToolError("INVALID_ARGUMENT", "cell_type is required for insert")
        place = ids.index(args.cell_id) + 1 if args.cell_id is not None else 0
        cells.insert(place, _build_cell(args.cell_type, args.new_source, notebook, len(cells)))
    else:
        place = ids.index(args.cell_id) if args.cell_id is not None else 0
        if not cells:
            raise ToolError("NO_MATCH", "The notebook has no cells.")
        if args.edit_mode == "delete":
            del cells[place]
        else:
            kind = args.cell_type or cells[place]["cell_type"]
            kept = {name: value for name, value in cells[place].items() if name not in {"outputs", "execution_count"}}
            cells[place] = kept | _build_cell(kind, args.new_source, {}, 0)
    return "write", {"path": args.notebook_path, "content": json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"}


def _build_cell(kind: str, source: str, notebook: dict[str, Any], number: int) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)}
    if notebook.get("nbformat", 0) >= 4 and notebook.get("nbformat_minor", 0) >= 5:
        cell["id"] = f"new-{number}"
    return cell | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def show_notebook(one: Answered) -> tuple[str, dict[str, Any]]:
    args = one.args
    twin = drop_none(new_source=args.new_source, cell_id=args.cell_id, cell_type=args.cell_type or "code")
    path = one.surface.to_absolute(one.data.path)
    twin |= {"edit_mode": args.edit_mode, "language": "python", "notebook_path": path, "diff": one.data.diff}
    return f"{args.edit_mode.capitalize()} of cell {args.cell_id or '0'} in {path} is done.", twin


def edit(args: Any, surface: Surface) -> Canonical:
    if not args.old_string and surface.find_kind(args.file_path) == "missing":
        return "write", {"path": args.file_path, "content": args.new_string}
    changed = {"oldText": args.old_string, "newText": args.new_string, "replaceAll": args.replace_all}
    return "edit", {"path": args.file_path, **changed}


def show_edit(one: Answered) -> tuple[str, dict[str, Any]]:
    if one.result.name == "write":
        return show_write(one)
    path, args = one.surface.to_absolute(one.data.path), one.args
    twin = {
        "filePath": path,
        "oldString": args.old_string,
        "newString": args.new_string,
        "originalFile": None,
        "structuredPatch": list_hunks(one.data.diff),
        "userModified": False,
        "replaceAll": args.replace_all,
    }
    return f"The file {path} has been updated successfully.", twin


def show_write(one: Answered) -> tuple[str, dict[str, Any]]:
    path, created = one.surface.to_absolute(one.data.path), one.data.created
    content = one.args.content if one.tool.name == "Write" else one.args.new_string
    twin = {
        "type": "create" if created else "update",
        "filePath": path,
        "content": content,
        "structuredPatch": [] if created else list_hunks(one.data.diff),
        "originalFile": None,
    }
    done = "File created successfully at: " if created else "The file has been updated successfully: "
    return f"{done}{path}", twin


def show_glob(one: Answered) -> tuple[str, dict[str, Any]]:
    files = [one.surface.to_absolute(path) for path in one.surface.sort_newest(one.data.files)]
    cut = one.result.meta.truncated or len(files) > _MAX_FILES
    shown = files[:_MAX_FILES]
    text = "\n".join(shown) or "No files found"
    if cut:
        text += "\n(Results are truncated. Consider using a more specific path or pattern.)"
    twin = {"durationMs": round(one.result.duration_ms), "numFiles": len(shown), "filenames": shown, "truncated": cut}
    return text, twin | drop_none(totalMatches=one.result.meta.total)


def grep(args: Any, _: Surface) -> Canonical:
    most = int(args.head_limit) + int(args.offset) if args.head_limit else 100_000
    lists_lines = args.output_mode == "content"
    glob = args.glob if args.glob is not None else find_type_glob(args.type) if args.type is not None else None
    fields = drop_none(path=args.path, filePattern=glob)
    fields |= {"mode": {"content": "content", "count": "count"}.get(args.output_mode, "files")}
    fields |= {"matchedOnly": bool(args.o), "multiline": args.multiline, "caseSensitive": not args.i}
    context = min(max(_find_context(args)), 20) if lists_lines and not args.o else 0
    return "search_text", {
        "pattern": args.pattern,
        "maxResults": min(most, 100_000) if lists_lines else 100_000,
        "contextLines": context,
        **fields,
    }


def _find_context(args: Any) -> tuple[int, int]:
    """Lines before and after a match. `context` goes before `-C`, and the more exact options before both."""
    around = args.context if args.context is not None else args.C
    before, after = (around if one is None else one for one in (args.B, args.A))
    return int(before or 0), int(after or 0)


def show_grep(one: Answered) -> tuple[str, dict[str, Any]]:
    args, data = one.args, one.data
    fits = build_path_filter([find_type_glob(args.type)]) if args.glob is not None and args.type is not None else None
    if args.output_mode == "content":
        rows_ = list(_list_rows(one, data))
        paths = list(dict.fromkeys(match.path for match in (*data.matches, *data.matched)))
    else:
        counted = [file for file in data.files if fits is None or fits(file.path)]
        paths = [file.path for file in counted]
        if args.output_mode == "count":
            rows_ = [f"{file.path}:{file.matches}" for file in counted]
        else:
            rows_ = paths = one.surface.sort_newest(tuple(paths))
    first, most = int(args.offset), int(args.head_limit)
    shown = rows_[first:][: most or None]
    text = "\n".join(shown)
    twin: dict[str, Any] = {"mode": args.output_mode, "numFiles": len(paths), "filenames": []}
    if args.output_mode == "files_with_matches":
        twin |= {"numFiles": len(shown), "filenames": shown, "totalFiles": len(paths)}
        text = f"Found {len(shown)} file{'' if len(shown) == 1 else 's'}\n{text}" if shown else "No files found"
    elif args.output_mode == "count":
        twin |= {"content": text, "numMatches": sum(file.matches for file in data.files if file.path in set(paths))}
        text = text or "No matches found"
    else:
        twin |= {"content": text, "numLines": len(shown), "totalLines": len(rows_)}
        text = text or "No matches found"
    if first or len(rows_) > len(shown):
        twin |= drop_none(appliedLimit=most or None, appliedOffset=first or None)
        text += f"\n\n[Showing results with pagination = limit: {most}, offset: {first}]"
    return text, twin


def _list_rows(one: Answered, data: SearchTextData) -> Iterator[str]:
    """Rows as grep prints them: `path:12:text` for a match, `path-13-text` for a line around it."""
    args = one.args
    numbered = args.n is not False
    if args.o:
        yield from (f"{match.path}:{f'{match.line}:' if numbered else ''}{match.text}" for match in data.matched)
        return
    before, after = _find_context(args)
    matched = {(match.path, match.line) for match in data.matches}
    last: tuple[str, int] | None = None
    for match in data.matches:
        lines = [(match.line - len(match.before) + at, text) for at, text in enumerate(match.before)]
        lines = [*lines[max(0, len(lines) - before) :], (match.line, match.text)]
        lines += [(match.line + 1 + at, text) for at, text in enumerate(match.after[:after])]
        for number, text in lines:
            if last is not None and last[0] == match.path and number <= last[1]:
                continue
            if last is not None and (before or after) and (last[0] != match.path or number > last[1] + 1):
                yield "--"
            last = (match.path, number)
            sign = ":" if (match.path, number) in matched else "-"
            yield f"{match.path}{sign}{f'{number}{sign}' if numbered else ''}{text}"
