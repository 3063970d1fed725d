"""The engine that is ripgrep. It walks by name, so what it says is only ever a candidate."""

from collections.abc import Iterable, Iterator

import msgspec

from handrail.protocol.error import ToolError
from handrail.workspace.search.child import Child
from handrail.workspace.search.command import files_command, hits_command, logs_little, stream_command
from handrail.workspace.search.complaints import Complaints
from handrail.workspace.search.engine import EngineName, FileHits, Notes, Pattern, Stop, Where, in_order
from handrail.workspace.search.kept import Kept, withheld
from handrail.workspace.search.messages import Assembly
from handrail.workspace.search.withheld import is_covered, withheld_until

MOST_NOISE = 1_000
"""Each line of a log costs some 25 microseconds; where there are more, protected names are counted by a second run."""


class Ripgrep:
    """One program, run in order (one thread, sorted) or not (many threads, as it comes)."""

    name: EngineName = "ripgrep"

    def __init__(self, program: str, *, ordered: bool = False) -> None:
        self.ordered = ordered
        self._program = program
        self._noisy: set[str] = set()
        """Folders where a log is long."""

    def files(self, where: Where, stop: Stop) -> Iterator[bytes]:
        """The files below a folder, by their paths below it."""
        kept, complaints = Kept(where), Complaints()
        where.notes.counted = True
        with Child(files_command(self._program, where, ordered=self.ordered), where.folder, complaints.add) as child:
            for path in _names(child.pieces(stop)):
                if kept(path):
                    yield path
            where.notes.unreadable = complaints.unreadable
            if not child.stopped and (status := child.status()) not in {0, 1} and not complaints.mishaps:
                raise complaints.failure(status)

    def hits(self, where: Where, pattern: Pattern, stop: Stop) -> Iterator[FileHits]:
        """The files with lines that match."""
        given: set[bytes] = set()
        if self._may_log(where):
            complaints = Complaints()
            run = self._run(where, pattern, lambda: stop() or complaints.noise > MOST_NOISE, complaints, log=True)
            for found in run:
                if found.unfinished and complaints.noise > MOST_NOISE:
                    continue  # the run was given up in the midst of it, and the next one finds it whole
                given.add(found.path)
                yield found
            # What a hit adds would tell of what is in a protected file: only names that were passed over count.
            where.notes.protected = set(complaints.passed_over)
            where.notes.counted = complaints.logs and not complaints.unclear and complaints.noise <= MOST_NOISE
            if complaints.noise <= MOST_NOISE:
                return
            self._noisy.add(where.relative)
        for found in self._run(where, pattern, stop, Complaints(), log=False):
            if found.path not in given:
                yield found

    def _may_log(self, where: Where) -> bool:
        return not self.ordered and logs_little(where) and where.relative not in self._noisy

    def _run(
        self, where: Where, pattern: Pattern, stop: Stop, complaints: Complaints, *, log: bool
    ) -> Iterator[FileHits]:
        kept, assembly = Kept(where), Assembly()
        command = hits_command(self._program, where, pattern, ordered=self.ordered, log=log)
        with Child(command, where.folder, complaints.add) as child:
            for found in assembly.hits(child.pieces(stop)):
                if kept(found.path):
                    yield found
            where.notes.unreadable = complaints.unreadable
            if not child.stopped and not assembly.complete:
                raise complaints.failure(child.status())

    def withheld(self, where: Where, last: bytes | None, stop: Stop) -> set[bytes]:
        """The names that policy withheld from the search that was just made of a place."""
        if self.ordered and not where.notes.counted:
            return withheld_until(where, last, stop)
        names = self._withheld(where, stop)
        return names if last is None else {name for name in names if in_order(name) <= in_order(last)}

    def _withheld(self, where: Where, stop: Stop) -> set[bytes]:
        if where.notes.counted:
            return withheld(sorted(where.notes.protected), where)
        # A withheld folder counts whatever is in it, so all names are looked at, not only those that are included.
        looked = msgspec.structs.replace(where, include=None, notes=Notes())
        for _ in self.files(looked, stop):
            pass
        names = sorted(filter(is_covered, looked.notes.protected))
        return withheld(names, where)

    def stream(self, descriptor: int, pattern: Pattern, stop: Stop) -> FileHits | None:
        """The hits in an open file, which is read from where it stands; None where there are none."""
        complaints, assembly = Complaints(), Assembly()
        with Child(stream_command(self._program, pattern), None, complaints.add, stdin=descriptor) as child:
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
