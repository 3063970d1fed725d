"""Where in a patch something is: what is refused says so."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from handrail.edit.patch.hunks import FilePatch
from handrail.protocol.errors import ToolError
from handrail.workspace.errors import clip_path

_NOTHING = " Nothing was changed."


def add_patch_position(error: ToolError, file: FilePatch) -> ToolError:
    """A refusal that says where in the patch it is about, and that nothing was done."""
    known = error.named_details
    if "hunk" in known:
        return error
    message = error.message.removesuffix(_NOTHING).removesuffix(" Nothing was written.")
    message = message if message.endswith(".") else f"{message}."
    whole = f"Line {file.line} of the patch ({file.action} {clip_path(file.path)}): {message}{_NOTHING}"
    return ToolError(error.code, whole, details={**known, "path": file.path, "patchLine": file.line})


def add_position_by_path(error: ToolError, files: Iterable[FilePatch], path: str) -> ToolError:
    """The same for the first file of the patch that has a path."""
    return next((add_patch_position(error, file) for file in files if path in {file.path, file.target}), error)


def check_nested_paths(files: Sequence[FilePatch]) -> None:
    """INVALID_ARGUMENT where a path is the folder of another: nothing is a file and a folder at once."""
    named = {_parts(path): file for file in reversed(files) for path in (file.path, file.target) if path}
    # In this order a folder comes right before what is in it.
    for outer, inner in pairwise(sorted(named)):
        if outer == inner[: len(outer)]:
            raise _both(named[outer], named[inner], "/".join(outer), "/".join(inner))


def _both(one: FilePatch, other: FilePatch, outer: str, inner: str) -> ToolError:
    first, last = sorted((one, other), key=lambda file: file.line)
    message = (
        f"{clip_path(inner)} is in {clip_path(outer)}, which is a file in the patch (see line {first.line} too). "
        "Where one goes and the other comes, send two patches."
    )
    return add_patch_position(ToolError("INVALID_ARGUMENT", message), last)


def _parts(path: str) -> tuple[str, ...]:
    kept: list[str] = ["/"] if path.startswith("/") else []
    for part in path.split("/"):
        if part == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif part not in {"", "."}:
            kept.append(part)
    return tuple(kept)
