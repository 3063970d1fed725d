"""Search in Python, where there is no ripgrep: the same files and lines, or a refusal that names ripgrep."""

import os
from collections.abc import Iterator

from handrail.policy.names import is_credential
from handrail.protocol.error import ToolError
from handrail.workspace.ignore import read_ignore_rules
from handrail.workspace.search.content import BinaryError, LineBlocks, check_text_pieces, read_utf8_pieces
from handrail.workspace.search.engine import EngineName, FileHits, Pattern, SearchScope, Stop, Without, to_sort_key
from handrail.workspace.search.expression import Expression, build_ripgrep_error
from handrail.workspace.search.gathering import HitCollector
from handrail.workspace.search.kept import CredentialFilter, GlobFilter
from handrail.workspace.search.walk import SearchWalk, WalkedFile
from handrail.workspace.search.withheld import collect_withheld_names


class PythonEngine:
    """Walks and searches by itself, in the order of `in_order`, through descriptors only."""

    name: EngineName = "python"

    def __init__(self, *, ordered: bool = True, without: Without = "not installed") -> None:
        self.ordered = ordered
        """Whether to be asked for the first results; they come in order in any case."""
        self._without: Without = without

    def files(self, where: SearchScope, stop: Stop) -> Iterator[bytes]:
        """The files below a folder, by their paths below it."""
        where.notes.counted = True
        protector = CredentialFilter()
        for found in self._candidates(where, stop):
            withheld = protector(found.path)
            if withheld is None:
                yield found.path
            else:
                where.notes.protected.add(withheld)

    def hits(self, where: SearchScope, pattern: Pattern, stop: Stop) -> Iterator[FileHits]:
        """The files with lines that match."""
        expression = self._expression(pattern)
        for found in self._candidates(where, stop, into_withheld=False):
            gathering = HitCollector(expression, pattern.context, pattern.per_file)
            self._gather(found, gathering, where, stop)
            if gathering.lines:
                yield FileHits(found.path, tuple(gathering.lines))

    def withheld(self, where: SearchScope, last: bytes | None, stop: Stop) -> set[bytes]:
        """The names that policy withheld from the search that was just made of a place."""
        if not where.notes.counted:
            return collect_withheld_names(where, last, stop)
        names = where.notes.protected
        return names if last is None else {name for name in names if to_sort_key(name) <= to_sort_key(last)}

    def stream(self, descriptor: int, pattern: Pattern, stop: Stop) -> FileHits | None:
        """The hits in an open file, which is read from where it stands; None where there are none."""
        expression = self._expression(pattern)
        gathering = HitCollector(expression, pattern.context, pattern.per_file)
        pieces = _Pieces(read_utf8_pieces(descriptor))
        gathering.take(LineBlocks(iter(pieces)), stop)
        if gathering.hits and pieces.binary:
            raise ToolError("BINARY_FILE", "The file is not text. Use a program that knows its format.")
        found = FileHits(b"", tuple(gathering.lines), gathering.oversized)
        return found if found.lines or found.oversized else None

    def _expression(self, pattern: Pattern) -> Expression:
        return Expression(pattern.text, case_sensitive=pattern.case_sensitive, without=self._without)

    def _candidates(self, where: SearchScope, stop: Stop, *, into_withheld: bool = True) -> Iterator[WalkedFile]:
        chosen = GlobFilter(where, ignored=False)

        def skip(path: bytes, folder: bool) -> bool:
            if not into_withheld and is_credential(os.fsdecode(path)):
                return True
            return not chosen(path, folder=folder)

        walk = SearchWalk(where.folder, read_ignore_rules(where.root, where.relative, where.ignore), skip)
        for found in walk.files():
            if walk.gap:
                raise build_ripgrep_error(walk.gap, self._without)
            if stop():
                return
            yield found
        where.notes.unreadable += walk.unreadable

    def _gather(self, found: WalkedFile, gathering: HitCollector, where: SearchScope, stop: Stop) -> None:
        """The hits of a file; none where it is no text."""
        try:
            descriptor = found.open()
        except OSError:
            where.notes.unreadable += 1
            return
        try:
            gathering.take(LineBlocks(check_text_pieces(read_utf8_pieces(descriptor))), stop)
        except BinaryError:
            gathering.lines.clear()
        except OSError:
            gathering.lines.clear()
            where.notes.unreadable += 1
        else:
            where.notes.oversized += gathering.oversized
        finally:
            os.close(descriptor)


class _Pieces:
    """Of a file that was named, NULs count as line ends: a match among them says that it is no text."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.binary = False

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.binary = self.binary or b"\0" in piece
            yield piece.replace(b"\0", b"\n")
