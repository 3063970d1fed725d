"""Searches a folder or a file within limits.

A sorted run returns early if there are many results. A parallel run finishes sooner if there are few. One of them is
started, then given up if it turns out to be the slower one. Every result of an engine is checked before it counts.
"""

import codecs
import os
import stat
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Generic, Literal, TypeVar

import msgspec

from handrail.protocol.errors import ToolError
from handrail.settings.model import SearchEngine
from handrail.workspace.file_state import read_chunks
from handrail.workspace.resolve import ENTER_FOLDER, LIST_FOLDER, READ_FILE, closing_descriptor, open_beneath
from handrail.workspace.search import engine as limits
from handrail.workspace.search.engine import (
    MAX_HITS,
    Engine,
    FileHits,
    HitLine,
    Pattern,
    SearchScope,
    SearchStats,
    Stop,
    to_sort_key,
)
from handrail.workspace.search.filters import list_protected_names
from handrail.workspace.search.ripgrep import Ripgrep, find_ripgrep
from handrail.workspace.text import UTF16_MARKS
from handrail.workspace.workspace import Workspace

# Checks that a result holds: inside the folder, now, with the same bytes

_MAX_SINGLE_LOOKUPS = 8
"""Names of one folder that are looked up one by one. For more, the folder is listed."""
_MAX_SPAN_BYTES = 1 << 16
"""Lines within so many bytes are read at once."""


def verify_names(scope: SearchScope, paths: list[bytes]) -> list[bytes]:
    """Return the paths that are regular files. Each folder is opened once."""
    folders: dict[bytes, list[bytes]] = {}
    for path in paths:
        folders.setdefault(path[: path.rfind(b"/") + 1], []).append(path)
    verified = {path for folder, inside in folders.items() for path in _list_files(scope, folder, inside)}
    return paths if len(verified) == len(paths) else [path for path in paths if path in verified]


def _list_files(scope: SearchScope, folder: bytes, paths: list[bytes]) -> list[bytes]:
    """Return the paths in a folder, which ends in a slash, that are regular files."""
    start = len(folder)
    try:
        outer = open_beneath(scope.folder, os.fsdecode(folder[:-1]) or ".", ENTER_FOLDER, kernel=scope.kernel)
    except OSError:
        return []
    try:
        if len(paths) <= _MAX_SINGLE_LOOKUPS:
            return [path for path in paths if _is_file(outer, path[start:])]
        with closing_descriptor(open_beneath(outer, ".", LIST_FOLDER)) as listed, os.scandir(listed) as entries:
            regular = {os.fsencode(entry.name) for entry in entries if entry.is_file(follow_symlinks=False)}
        return [path for path in paths if path[start:] in regular]
    finally:
        os.close(outer)


def verify_hits(scope: SearchScope, hits: FileHits, most: int) -> FileHits | None:
    """Return the lines that the file holds at their places. None if there are none, or no such file inside.

    An engine need not read on after more hits than `most`. Then the rest of the file is checked for NULs here. A file
    with only oversized lines stays, without lines.
    """
    path = os.fsdecode(hits.path)
    try:
        with closing_descriptor(open_beneath(scope.folder, path, READ_FILE, kernel=scope.kernel)) as descriptor:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or _is_credential(scope, status):
                return None
            verified = FileHits(hits.path, _verify_lines(descriptor, hits.lines), hits.oversized, hits.unfinished)
            count = verified.count_hits()
            if (hits.unfinished or count > most) and _has_nul(descriptor):
                return None
    except OSError:
        return None
    if count:
        return verified
    return FileHits(hits.path, (), hits.oversized) if hits.oversized else None


def _is_file(folder: int, name: bytes) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _is_credential(scope: SearchScope, status: os.stat_result) -> bool:
    """Whether a file is a credential under another name."""
    return status.st_nlink > 1 and (status.st_dev, status.st_ino) in scope.credential_files()


def _verify_lines(descriptor: int, lines: tuple[HitLine, ...]) -> tuple[HitLine, ...]:
    mark = os.pread(descriptor, 3, 0)
    if mark[:2] in UTF16_MARKS:
        texts = codecs.iterdecode(read_chunks(descriptor, 2), UTF16_MARKS[mark[:2]], "replace")
        return tuple(_verify_decoded((text.encode() for text in texts), lines))
    if not lines:
        return ()
    start, end = lines[0].offset, lines[-1].offset + len(lines[-1].data)
    shift = len(codecs.BOM_UTF8) if mark == codecs.BOM_UTF8 else 0
    if end - start <= _MAX_SPAN_BYTES:
        data = os.pread(descriptor, end - start, start + shift)
        return tuple(line for line in lines if data.startswith(line.data, line.offset - start))
    return tuple(line for line in lines if os.pread(descriptor, len(line.data), line.offset + shift) == line.data)


def _verify_decoded(pieces: Iterator[bytes], lines: Sequence[HitLine]) -> Iterator[HitLine]:
    """Yield the lines, which are in the file's order, that the text in UTF-8 holds."""
    text, start = b"", 0
    for line in lines:
        while start + len(text) < line.offset + len(line.data):
            piece = next(pieces, None)
            if piece is None:
                break
            passed = max(0, min(line.offset - start, len(text)))
            text, start = text[passed:] + piece, start + passed
        if line.offset >= start and text.startswith(line.data, line.offset - start):
            yield line


def _has_nul(descriptor: int) -> bool:
    """Whether a file holds a NUL, so is no text. In UTF-16 nearly every character has one."""
    if os.pread(descriptor, 2, 0) in UTF16_MARKS:
        return False
    return any(b"\0" in piece for piece in read_chunks(descriptor))


Item = TypeVar("Item")
Limit = Literal["time", "hits", "size"]
End = Literal["complete", "enough", "time", "slow", "size"]
"""Why a run ended: nothing is left, it has more than asked for, its time is over, it is too slow, it holds too much.

A run is too slow also if it has so many results that the first ones are found sooner in order.
"""
Judge = Callable[[float, int], bool]
"""Tells by the processor seconds of a run and its results so far whether to give it up."""

MAX_SECONDS = 1.0
"""Seconds of a search with ripgrep, all its runs together."""
_PYTHON_SECONDS = 10.0
STREAM_SECONDS = 20
"""Seconds for a single file that was named."""
_WHOLE_SHARE, _ORDERED_SHARE = 0.75, 0.95
"""Shares of the time: when a whole run ends, when the ordered run after it ends."""
_ATTEMPT_SECONDS = 0.06
"""Processor seconds of an attempt. A busy machine may need five times as long for them."""
_GLANCE_SECONDS = 0.008
"""Processor seconds that an attempt may take before its first result: ripgrep has to start and to sort folders."""
_PLENTY, _FAR_TOO_MANY = 2, 8
"""If there are so many times more names than asked for, only the first ones are verified, or a run is given up."""
_EVERYTHING = frozenset({"*", "**", "**/*"})
"""Globs of all files. The first results are never far."""
_MAX_BATCH_RESULTS = 1_000
"""Results that are verified between two looks at the clock."""


class Engines(msgspec.Struct, frozen=True):
    whole: Engine
    """Finishes sooner."""
    ordered: Engine
    """Finds the first results first."""
    seconds: float = MAX_SECONDS


class SearchResult(msgspec.Struct, Generic[Item], frozen=True):
    """Verified results in order."""

    items: list[Item]
    total: int
    exact: bool
    """Whether `total` counts all results."""
    limits: tuple[Limit, ...]
    protected: int | None
    """The number of names that policy withheld. None if no list of them was at hand."""
    stats: SearchStats


class SearchTask(msgspec.Struct, Generic[Item], frozen=True):
    """Finds, weighs and verifies one kind of result."""

    find: Callable[[Engine, SearchScope, Stop], Iterator[list[Item]]]
    weigh: Callable[[list[Item]], tuple[int, int]]
    """Returns how many results the items hold, and how many bytes."""
    key: Callable[[Item], bytes]
    """Returns what an item is sorted by."""
    verify: Callable[[SearchScope, list[Item]], list[Item]]


def choose_engines(workspace: Workspace, choice: SearchEngine) -> Engines:
    """Return ripgrep if there is one, else Python. ToolError UNAVAILABLE if the chosen one is missing."""
    program = None if choice == "python" else find_ripgrep(root.path for root in workspace.roots)
    if program is not None:
        return Engines(Ripgrep(program), Ripgrep(program, ordered=True), MAX_SECONDS)
    if choice == "ripgrep":
        message = "ripgrep is not installed, and the setting search.engine asks for it; see `handrail doctor`."
        raise ToolError("UNAVAILABLE", message)
    from handrail.workspace.search.python_engine import PythonEngine  # noqa: PLC0415  rarely needed

    without = "disabled" if choice == "python" else "not installed"
    return Engines(PythonEngine(ordered=False, without=without), PythonEngine(without=without), _PYTHON_SECONDS)


def find_files(engines: Engines, scope: SearchScope, most: int, cancelled: Stop) -> SearchResult[bytes]:
    """Find the files below a folder. Names come fast: a whole run first, given up if there are far too many."""
    task = SearchTask[bytes](
        find=lambda engine, scope, stop: engine.files(scope, stop),
        weigh=lambda paths: (len(paths), sum(map(len, paths))),
        key=to_sort_key,
        verify=verify_names,
    )
    search = _Search(engines, scope, task, most, cancelled, time.monotonic())
    found = search.run_ordered(engines.seconds * _ORDERED_SHARE) if scope.include in _EVERYTHING else None
    found = found or search.finish(lambda _seconds, count: count > _FAR_TOO_MANY * most, _PLENTY * most)
    return _refuse_cancelled(found, cancelled)


def find_hits(
    engines: Engines, scope: SearchScope, pattern: Pattern, most: int, cancelled: Stop
) -> SearchResult[FileHits]:
    """Find the lines that match. Reading takes time: an ordered run first, given up if hits are rare."""

    def verify(scope: SearchScope, candidates: list[FileHits]) -> list[FileHits]:
        checked = [hits for hits in (verify_hits(scope, hits, most) for hits in candidates) if hits is not None]
        scope.stats.oversized += sum(hits.oversized for hits in checked)
        return [hits for hits in checked if hits.lines]

    first = msgspec.structs.replace(pattern, per_file=most + 1)

    def find(engine: Engine, scope: SearchScope, stop: Stop) -> Iterator[list[FileHits]]:
        return ([hits] for hits in engine.hits(scope, first if engine.ordered else pattern, stop))

    task = SearchTask[FileHits](
        find=find,
        weigh=_weigh_hits,
        key=lambda hits: to_sort_key(hits.path),
        verify=verify,
    )
    search = _Search(engines, scope, task, most, cancelled, time.monotonic())

    def is_too_slow(seconds: float, count: int) -> bool:
        return count < most * (seconds - _GLANCE_SECONDS) / (_ATTEMPT_SECONDS - _GLANCE_SECONDS)

    found = search.run_ordered(5 * _ATTEMPT_SECONDS, is_too_slow) or search.finish()
    return _refuse_cancelled(found, cancelled)


def _weigh_hits(files: list[FileHits]) -> tuple[int, int]:
    weights = [hits.weight() for hits in files]
    return sum(count for count, _ in weights), sum(size for _, size in weights)


def find_in_stream(engines: Engines, descriptor: int, pattern: Pattern, cancelled: Stop) -> SearchResult[FileHits]:
    end = time.monotonic() + STREAM_SECONDS
    is_late = False

    def stop() -> bool:
        nonlocal is_late
        is_late = is_late or time.monotonic() > end
        return is_late or cancelled()

    hits = engines.whole.stream(descriptor, pattern, stop) or FileHits(b"", ())
    total, size = hits.weight()
    if is_late and not total:
        raise ToolError("TIMEOUT", f"The file could not be searched in {STREAM_SECONDS} s; search another way.")
    fired: tuple[Limit, ...] = ("time",) if is_late else ()
    if total >= pattern.per_file:
        fired = ("hits",)
    elif size > limits.MAX_RESULT_BYTES:
        fired = ("size",)
    found = SearchResult([hits] if total else [], total, not fired, fired, 0, SearchStats(oversized=hits.oversized))
    return _refuse_cancelled(found, cancelled)


def _refuse_cancelled(found: SearchResult[Item], cancelled: Stop) -> SearchResult[Item]:
    """The result, or CANCELLED: a cancelled search ends early, so its result is not complete."""
    if cancelled():
        raise ToolError("CANCELLED", "The call was cancelled.")
    return found


def _never(_seconds: float, _count: int) -> bool:
    return False


class _Run(msgspec.Struct, Generic[Item]):
    """One run of an engine: takes candidates until there are too many of them, or too little time."""

    _task: SearchTask[Item]
    scope: SearchScope
    _most: int
    _seconds: float
    _cancelled: Stop
    _judge: Judge
    _began: float
    items: list[Item] = []
    end: End = "complete"
    count: int = 0
    _bytes: int = 0

    def take(self, engine: Engine) -> None:
        with closing(self._find(engine)) as candidates:
            for items in candidates:
                self._add(items)
                if self.end != "complete":
                    break
        if self.scope.stats.unsure:
            self.items, self.count, self.end = [], 0, "slow"

    def _find(self, engine: Engine) -> Generator[list[Item]]:
        yield from self._task.find(engine, self.scope, self._stop)

    def _stop(self) -> bool:
        passed = time.monotonic() - self._began
        if self._is_slow(passed):
            self.end = "slow"
        elif passed > self._seconds or self._cancelled():
            self.end = "time"
        return self.end != "complete"

    def _add(self, items: list[Item]) -> None:
        del items[self._most + 1 - self.count :]  # each holds at least one result, and more are not asked for
        count, size = self._task.weigh(items)
        self.items += items
        self.count += count
        self._bytes += size
        if self.count > self._most:
            self.end = "enough"
        elif self._bytes > limits.MAX_RESULT_BYTES:
            self.end = "size"

    def _is_slow(self, passed: float) -> bool:
        """Ask the judge, by the program's processor time if that is known: it does not pass while others work."""
        busy = self.scope.stats.busy
        return self._judge(passed if busy is None else busy, self.count)


class _Search(msgspec.Struct, Generic[Item]):
    """One search: up to three runs that share its time."""

    _engines: Engines
    _scope: SearchScope
    _task: SearchTask[Item]
    _most: int
    _cancelled: Stop
    _began: float

    def run_ordered(self, seconds: float, judge: Judge = _never) -> SearchResult[Item] | None:
        """Return the first results. None if they take too long, or too few of them hold."""
        run = self._run(self._engines.ordered, self._most, seconds, judge)
        if run.end in {"time", "slow"}:
            return None
        result = self._build_result(self._verify(run), run)
        return result if result.exact or result.total >= self._most else None

    def finish(self, judge: Judge = _never, plenty: int = MAX_HITS) -> SearchResult[Item]:
        """Return all results. If there are more than `plenty`, return the first ones, or at least some.

        After a limit these come from a second run, which is given up for no other one.
        """
        partial = self._run(self._engines.whole, MAX_HITS, self._measure_left(_WHOLE_SHARE), judge)
        if partial.end == "complete" and partial.count <= plenty:
            return self._build_result(self._verify(partial), partial)
        if partial.end == "complete":
            partial.end = "slow"
            first = self._verify(partial, self._most + 1)
            if self._count(first) >= self._most:
                return self._build_result(first, partial)
        limit: Limit = "hits" if partial.end == "enough" else "size" if partial.end == "size" else "time"
        run = self._run(self._engines.ordered, self._most, self._measure_left(_ORDERED_SHARE))
        first = self._verify(run)
        if run.end == "complete" or (partial.end == "slow" and self._count(first) >= self._most):
            return self._build_result(first, run)
        if self._count(first) < self._most:
            some = self._verify(partial)
            if self._count(some) > self._count(first):
                return msgspec.structs.replace(self._build_result(some, partial), limits=(limit,))
        result = self._build_result(first, run)
        total = max(result.total, self._count_verified(partial))
        return msgspec.structs.replace(result, total=total, limits=(limit,))

    def _run(self, engine: Engine, most: int, seconds: float, judge: Judge = _never) -> _Run[Item]:
        scope = msgspec.structs.replace(self._scope, stats=SearchStats())
        run = _Run(self._task, scope, most, seconds, self._cancelled, judge, time.monotonic())
        run.take(engine)
        return run

    def _verify(self, run: _Run[Item], most: int | None = None) -> list[Item]:
        run.items.sort(key=self._task.key)
        return self._task.verify(run.scope, run.items[:most])

    def _count(self, items: list[Item]) -> int:
        return self._task.weigh(items)[0]

    def _count_verified(self, run: _Run[Item]) -> int:
        """Count the results of a run that hold, as far as there is time to verify them."""
        scope = msgspec.structs.replace(run.scope, stats=SearchStats())
        count = 0
        for start in range(0, len(run.items), _MAX_BATCH_RESULTS):
            if self._cancelled() or self._measure_left(1) < 0:
                break
            count += self._count(self._task.verify(scope, run.items[start : start + _MAX_BATCH_RESULTS]))
        return count

    def _measure_left(self, share: float) -> float:
        """Return the seconds until a share of the search's time has passed."""
        return self._began + share * self._engines.seconds - time.monotonic()

    def _build_result(self, items: list[Item], run: _Run[Item]) -> SearchResult[Item]:
        total, is_complete = self._count(items), run.end == "complete"
        last = None if is_complete and total <= self._most else self._find_last_shown(items)
        return SearchResult(items, total, is_complete, (), self._count_protected(last), run.scope.stats)

    def _find_last_shown(self, items: list[Item]) -> bytes | None:
        """Return the key of the last result that is shown. Every run ends at the same one."""
        shown = 0
        for item in items:
            shown += self._task.weigh([item])[0]
            if shown >= self._most:
                return self._task.key(item)
        return self._task.key(items[-1]) if items else None

    def _count_protected(self, last: bytes | None) -> int | None:
        names = list_protected_names(self._scope, last)
        return None if names is None else len(names)
