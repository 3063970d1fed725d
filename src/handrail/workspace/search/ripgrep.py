"""The engine that is ripgrep. It walks by name, so what it says is only ever a candidate."""

from collections.abc import Iterable, Iterator

import msgspec

from handrail.protocol.error import ToolError
from handrail.workspace.search.child import RipgrepProcess
from handrail.workspace.search.command import (
    build_files_command,
    build_hits_command,
    build_stream_command,
    has_short_log,
)
from handrail.workspace.search.complaints import RipgrepStderr
from handrail.workspace.search.engine import EngineName, FileHits, Pattern, SearchScope, SearchStats, Stop, to_sort_key
from handrail.workspace.search.kept import PathFilter, list_withheld_names
from handrail.workspace.search.messages import HitAssembler
from handrail.workspace.search.withheld import collect_withheld_names, is_covered

MAX_NOISE_LINES = 1_000
"""Each line of a log costs some 25 microseconds; where there are more, protected names are counted by a second run."""


class Ripgrep:
    """One program, run in order (one thread, sorted) or not (many threads, as it comes)."""

    name: EngineName = "ripgrep"

    def __init__(self, program: str, *, ordered: bool = False) -> None:
        self.ordered = ordered
        self._program = program
        self._noisy: set[str] = set()
        """Folders where a log is long."""

    def files(self, where: SearchScope, stop: Stop) -> Iterator[bytes]:
        """The files below a folder, by their paths below it."""
        kept, complaints = PathFilter(where), RipgrepStderr()
        where.notes.counted = True
        with RipgrepProcess(
            build_files_command(self._program, where, ordered=self.ordered), where.folder, complaints.add
        ) as child:
            for path in _names(child.pieces(stop)):
                if kept(path):
                    yield path
            where.notes.unreadable = complaints.unreadable
            if not child.stopped and (status := child.status()) not in {0, 1} and not complaints.mishaps:
                raise complaints.failure(status)

    def hits(self, where: SearchScope, pattern: Pattern, stop: Stop) -> Iterator[FileHits]:
        """The files with lines that match."""
        given: set[bytes] = set()
        if self._may_log(where):
            complaints = RipgrepStderr()
            run = self._run(where, pattern, lambda: stop() or complaints.noise > MAX_NOISE_LINES, complaints, log=True)
            for found in run:
                if found.unfinished and complaints.noise > MAX_NOISE_LINES:
                    continue  # the run was given up in the midst of it, and the next one finds it whole
                given.add(found.path)
                yield found
            # What a hit adds would tell of what is in a protected file: only names that were passed over count.
            where.notes.protected = set(complaints.passed_over)
            where.notes.counted = complaints.logs and not complaints.unclear and complaints.noise <= MAX_NOISE_LINES
            if complaints.noise <= MAX_NOISE_LINES:
                return
            self._noisy.add(where.relative)
        for found in self._run(where, pattern, stop, RipgrepStderr(), log=False):
            if found.path not in given:
                yield found

    def _may_log(self, where: SearchScope) -> bool:
        return not self.ordered and has_short_log(where) and where.relative not in self._noisy

    def _run(
        self, where: SearchScope, pattern: Pattern, stop: Stop, complaints: RipgrepStderr, *, log: bool
    ) -> Iterator[FileHits]:
        kept, assembly = PathFilter(where), HitAssembler()
        command = build_hits_command(self._program, where, pattern, ordered=self.ordered, log=log)
        with RipgrepProcess(command, where.folder, complaints.add) as child:
            for found in assembly.hits(child.pieces(stop)):
                if kept(found.path):
                    yield found
            where.notes.unreadable = complaints.unreadable
            if not child.stopped and not assembly.complete:
                raise complaints.failure(child.status())

    def withheld(self, where: SearchScope, last: bytes | None, stop: Stop) -> set[bytes]:
        """The names that policy withheld from the search that was just made of a place."""
        if self.ordered and not where.notes.counted:
            return collect_withheld_names(where, last, stop)
        names = self._withheld(where, stop)
        return names if last is None else {name for name in names if to_sort_key(name) <= to_sort_key(last)}

    def _withheld(self, where: SearchScope, stop: Stop) -> set[bytes]:
        if where.notes.counted:
            return list_withheld_names(sorted(where.notes.protected), where)
        # A withheld folder counts whatever is in it, so all names are looked at, not only those that are included.
        looked = msgspec.structs.replace(where, include=None, notes=SearchStats())
        for _ in self.files(looked, stop):
            pass
        names = sorted(filter(is_covered, looked.notes.protected))
        return list_withheld_names(names, where)

    def stream(self, descriptor: int, pattern: Pattern, stop: Stop) -> FileHits | None:
        """The hits in an open file, which is read from where it stands; None where there are none."""
        complaints, assembly = RipgrepStderr(), HitAssembler()
        with RipgrepProcess(
            build_stream_command(self._program, pattern), None, complaints.add, stdin=descriptor
        ) as child:
            found = next(assembly.hits(child.pieces(stop)), None)
            broken_off = found is None or (found.unfinished and not assembly.full)
            if broken_off and not child.stopped and not assembly.complete:
                raise complaints.failure(child.status())
        if assembly.binary:
            raise ToolError("BINARY_FILE", "The file is not text. Use a program that knows its format.")
        return found


def _names(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *names, rest = (rest + piece).split(b"\0")
        for name in names:
            yield name[2:] if name.startswith(b"./") else name
