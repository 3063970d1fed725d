"""Search in Python, for where there is no ripgrep: the same files and the same lines, or a refusal that names ripgrep."""

from collections.abc import Iterator

from handrail.protocol.error import ToolError
from handrail.workspace.ignore import rules_at
from handrail.workspace.search.engine import FileHits, Pattern, Stop, Where
from handrail.workspace.search.glob import excluder, matcher
from handrail.workspace.search.walk import Found, Walk


class PythonEngine:
    """Walks and searches by itself, in the order of `in_order`."""

    name = "python"

    def files(self, where: Where, stop: Stop) -> Iterator[bytes]:
        """The files below a folder, by their paths below it."""
        for found in _candidates(where, stop):
            yield found.path

    def hits(self, where: Where, pattern: Pattern, stop: Stop) -> Iterator[FileHits]:
        """The files with lines that match."""
        raise NotImplementedError


def _candidates(where: Where, stop: Stop) -> Iterator[Found]:
    included = matcher(where.include) if where.include is not None else None
    excluders = [excluder(glob) for glob in where.exclude]

    def skip(path: bytes, folder: bool) -> bool:
        if any(excluded(path, folder) for excluded in excluders):
            return True
        return included is not None and not folder and not included(path)

    walk = Walk(where.folder, rules_at(where.root, where.relative, where.ignore), skip)
    for found in walk.files():
        if walk.gap:
            raise ToolError("UNAVAILABLE", f"This search needs ripgrep (rg), which is not installed here: {walk.gap}.")
        if stop():
            return
        yield found
