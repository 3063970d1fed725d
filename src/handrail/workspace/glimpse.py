"""Small looks into a workspace, for who needs no tool: a file that may only be so large, the names in a folder."""

import heapq
import os
from collections import deque
from collections.abc import Iterator

from handrail.protocol.error import ToolError
from handrail.workspace.errors import clip_path, to_tool_error
from handrail.workspace.workspace import Workspace


def read_small_file(workspace: Workspace, path: str, most: int) -> bytes:
    """All of a regular file; ToolError where there is none, or a larger one. A pipe or a device is not waited for."""
    with workspace.open_file(path) as opened:
        if opened.status.st_size > most:
            raise ToolError("LIMIT_EXCEEDED", f"{clip_path(path)} has more than {most} bytes.")
        try:
            data = b""
            while len(data) <= most and (piece := os.read(opened.descriptor, most + 1 - len(data))):
                data += piece
        except OSError as error:
            raise to_tool_error(error, path) from None
    if len(data) > most:
        raise ToolError("LIMIT_EXCEEDED", f"{clip_path(path)} has more than {most} bytes.")
    return data


def list_folder_names(workspace: Workspace, path: str, most: int) -> tuple[tuple[str, ...], int]:
    """The first names in a folder, in their order, and how many it has; names that are no text are left out."""
    count = 0
    with workspace.open_folder(path) as opened:
        try:
            with os.scandir(opened.descriptor) as found:

                def names() -> Iterator[str]:
                    nonlocal count
                    for entry in found:
                        if entry.name.isprintable():
                            count += 1
                            yield entry.name

                first = heapq.nsmallest(most, names())
        except OSError as error:
            raise to_tool_error(error, path) from None
    return tuple(first), count


def list_files_below(workspace: Workspace, path: str, most: int, depth: int) -> tuple[str, ...]:
    """The first regular files below a folder, upper levels first, relative to it; links are not followed. At most ten
    names are looked at for each file that is wanted: a tree may be all folders."""
    found: list[str] = []
    waiting, looks = deque([("", 1)]), 10 * most
    while waiting and looks > 0 and len(found) < most:
        folder, level = waiting.popleft()
        looks -= 1
        try:
            names, _ = list_folder_names(workspace, f"{path}/{folder}" if folder else path, most)
        except ToolError:
            continue
        looks -= len(names)
        for name in names:
            below = f"{folder}/{name}" if folder else name
            kind = _read_kind(workspace, f"{path}/{below}")
            if kind == "file":
                found.append(below)
            elif kind == "directory" and level < depth:
                waiting.append((below, level + 1))
    return tuple(sorted(found[:most]))


def _read_kind(workspace: Workspace, path: str) -> str:
    """Of the name itself: where a link leads is another file's business."""
    try:
        return workspace.fact_for_command(path, "delete").kind
    except ToolError:
        return "missing"
