"""A Jupyter notebook as the cells that Claude Code knows."""

import json
from typing import Any

from handrail.dialects.dialect import Canonical
from handrail.dialects.render import clean
from handrail.dialects.session_view import Surface
from handrail.protocol.errors import ToolError
from handrail.protocol.wire import sanitize_json

_MAX_NOTEBOOK_BYTES = 8 * 1024 * 1024
_BROKEN = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


def parse_cells(text: str) -> list[dict[str, Any]] | None:
    """The cells of a notebook for an answer. None if the text is no notebook."""
    try:
        cells = json.loads(text)["cells"]
        shown = [
            {"cell_id": cell.get("id", f"cell-{number}"), "cellType": cell["cell_type"]}
            | {"source": "".join(cell["source"]), "outputs": cell.get("outputs", [])}
            for number, cell in enumerate(cells)
        ]
        return sanitize_json(shown)[0]
    except _BROKEN:
        return None


def edit_notebook(args: Any, given: dict[str, Any], surface: Surface) -> Canonical:
    """The whole new notebook: its JSON with one cell replaced, inserted or deleted."""
    data = surface.read_small_file(args.notebook_path, _MAX_NOTEBOOK_BYTES)
    try:
        notebook = json.loads(data)
        _change_cell(args, notebook)
        content = json.dumps(notebook, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        content.encode()
    except _BROKEN:
        text = f"{args.notebook_path} is not a notebook in plain JSON. Nothing was changed."
        raise ToolError("INVALID_ARGUMENT", text) from None
    return "write", {**given, "content": content}


def _change_cell(args: Any, notebook: dict[str, Any]) -> None:
    cells: list[dict[str, Any]] = notebook["cells"]
    ids = [cell.get("id", f"cell-{number}") for number, cell in enumerate(cells)]
    if args.cell_id is not None and args.cell_id not in ids:
        known = ", ".join(map(clean, ids[:50]))
        raise ToolError("NO_MATCH", f"There is no cell {clean(args.cell_id)}; there are {known}.")
    place = ids.index(args.cell_id) if args.cell_id is not None else 0
    if args.edit_mode == "insert":
        if args.cell_type is None:
            raise ToolError("INVALID_ARGUMENT", "cell_type is required for insert")
        after = place + 1 if args.cell_id is not None else 0
        cells.insert(after, _build_cell(args.cell_type, args.new_source, notebook, len(cells)))
    elif not cells:
        raise ToolError("NO_MATCH", "The notebook has no cells.")
    elif args.edit_mode == "delete":
        del cells[place]
    else:
        kind = args.cell_type or cells[place]["cell_type"]
        kept = {name: value for name, value in cells[place].items() if name not in {"outputs", "execution_count"}}
        cells[place] = kept | _build_cell(kind, args.new_source, {}, 0)


def _build_cell(kind: str, source: str, notebook: dict[str, Any], number: int) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)}
    if notebook.get("nbformat", 0) >= 4 and notebook.get("nbformat_minor", 0) >= 5:
        cell["id"] = f"new-{number}"
    return cell | ({"outputs": [], "execution_count": None} if kind == "code" else {})
