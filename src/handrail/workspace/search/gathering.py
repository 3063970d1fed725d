"""The lines of one file that match, with their neighbours, their numbers and where they are."""

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice

import msgspec

from handrail.workspace.search import run
from handrail.workspace.search.clip import clip
from handrail.workspace.search.content import LineBlocks
from handrail.workspace.search.engine import MAX_LINE_BYTES, HitLine
from handrail.workspace.search.expression import Expression
from handrail.workspace.search.regex.searcher import MatchedLine, Spans


class HitCollector:
    """Goes through a file block by block; holds what is shown and no more."""

    def __init__(self, expression: Expression, context: int, most: int) -> None:
        self.lines: list[HitLine] = []
        self.oversized = 0
        self.hits = 0
        self._expression = expression
        self._most = most
        self._number, self._offset = 1, 0
        self._before: deque[tuple[int, int, bytes]] = deque(maxlen=context)
        self._context = context
        self._after = 0
        self._bytes = 0

    @property
    def full(self) -> bool:
        """Whether there are as many hits as were asked for, or more text than can be held."""
        return self.hits >= self._most or self._bytes > run.MAX_RESULT_BYTES

    def take(self, blocks: LineBlocks, stop: Callable[[], bool]) -> None:
        """Gathers from all blocks, until it is told to stop or has enough."""
        for block in blocks:
            if blocks.passed_over:
                self.oversized += 1
                self._number, self._offset = self._number + 1, self._offset + blocks.passed_over
                self._before.clear()
            text = block.decode("utf-8", "surrogateescape")
            matched = self._expression.lines(text, stop)
            self._hits(_Text(text), matched) if not self._context else self._all(block, text, matched)
            if stop() or self.full:
                return

    def _hits(self, text: "_Text", matched: Iterable[MatchedLine]) -> None:
        """Only the lines that match: what lies between them is counted, not looked at."""
        at = 0
        for line in matched:
            self._move(text, at, line.start)
            at = line.start
            self._keep(self._number, self._offset, text.bytes(line.start, line.end), text.in_bytes(line))
            if self.full:
                return
        self._move(text, at, len(text.text))

    def _move(self, text: "_Text", start: int, end: int) -> None:
        self._number += text.text.count("\n", start, end)
        self._offset += text.size(start, end)

    def _all(self, block: bytes, text: str, matched: Iterable[MatchedLine]) -> None:
        """Line after line: each may be a neighbour."""
        whole = _Text(text)
        hits: dict[int, Spans] = {}
        start = size = 0
        for line in islice(matched, self._most - self.hits):
            start, size = line.start, size + whole.size(start, line.start)
            hits[size] = whole.in_bytes(line)
        at = 0
        while at < len(block):
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
            self._one(block[at:end], hits.get(at))
            self._number, self._offset, at = self._number + 1, self._offset + end + 1 - at, end + 1
            if self.full:
                return

    def _one(self, data: bytes, spans: Spans | None) -> None:
        if spans is not None:
            for number, offset, line in self._before:
                self._keep(number, offset, line, None)
            self._before.clear()
            self._keep(self._number, self._offset, data, spans)
            self._after = self._context
        elif self._after:
            self._keep(self._number, self._offset, data, None)
            self._after -= 1
        else:
            self._before.append((self._number, self._offset, data))

    def _keep(self, number: int, offset: int, data: bytes, spans: Spans | None) -> None:
        self.hits += spans is not None
        if _message_length(data, spans or []) > MAX_LINE_BYTES:
            self.oversized += 1
            return
        line = clip(number, offset, data.removesuffix(b"\r"), spans or [])
        # That it matched shows in its spans, also where nothing in particular matched.
        matched = spans is not None and not line.spans
        self._bytes += len(line.data) + run.LINE_BYTES
        self.lines.append(msgspec.structs.replace(line, spans=((0, 0),)) if matched else line)


class _Text:
    """A text and how many bytes its parts are."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._is_ascii = text.isascii()

    def bytes(self, start: int, end: int) -> bytes:
        return self.text[start:end].encode("utf-8", "surrogateescape")

    def size(self, start: int, end: int) -> int:
        return end - start if self._is_ascii else len(self.bytes(start, end))

    def in_bytes(self, line: MatchedLine) -> Spans:
        if self._is_ascii:
            return line.spans
        spans: Spans = []
        at = size = 0
        for first, last in line.spans:
            start = size + self.size(line.start + at, line.start + first)
            size = start + self.size(line.start + first, line.start + last)
            spans.append((start, size))
            at = last
        return spans


def _message_length(data: bytes, spans: Spans) -> int:
    """How long ripgrep's message about a line is, if that may matter: there the message is what is bounded."""
    if 8 * len(data) + 100 * len(spans) < MAX_LINE_BYTES:
        return 0
    matches = sum(_length(data[first:last]) for first, last in spans)
    return _length(data) + matches + 40 * len(spans) + 200


def _length(data: bytes) -> int:
    try:
        return len(msgspec.json.encode(data.decode()))
    except UnicodeDecodeError:
        return len(data) * 4 // 3
