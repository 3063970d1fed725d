"""What grep says: matches for programs, lines grouped by file for models."""

from collections.abc import Callable, Iterator
from itertools import takewhile

from handrail.protocol.text import escape_unprintable
from handrail.tools.contract import Output
from handrail.tools.grep import GrepArguments, GrepData, GrepMatch
from handrail.tools.search_words import describe_omissions, list_fired_limits, render_hidden_count, render_no_results
from handrail.tools.shown import format_count
from handrail.workspace.search.engine import MAX_RESULT_BYTES, FileHits, HitLine
from handrail.workspace.search.search import Engines, SearchResult
from handrail.workspace.text import decode_page, detect_encoding

Name = Callable[[bytes], str]


def build_grep_output(
    arguments: GrepArguments, found: SearchResult[FileHits], real: str, engines: Engines, name: Name, empty: str
) -> Output:
    """The result of a search in one folder or file."""
    shown = list(_first(found.items, arguments.max_results, arguments.context_lines))
    returned = sum(hits.count_hits() for hits in shown)
    more = found.total > returned or not found.exact
    return Output(
        summary=_summary(returned, len(shown), found),
        content=("\n".join(_grouped(hits, name) for hits in shown) or render_no_results(found, "matches", empty))
        + render_hidden_count(found),
        data=GrepData(path=real, matches=tuple(_matches(shown, name, arguments.context_lines))),
        whole=_whole(found, name) if found.exact and more else None,
        truncated=more,
        meta={
            "returned": returned,
            "total": found.total if found.exact else max(found.total, returned),
            "total_is_lower_bound": not found.exact,
            "files": len(found.items) if found.exact else len(shown),
            "protected": found.protected,
            "engine": engines.whole.name,
            "limits": list_fired_limits(found),
        },
        warnings=describe_omissions(found, engines, returned, "matches", "path, filePattern or pattern"),
    )


def _summary(returned: int, files: int, found: SearchResult[FileHits]) -> str:
    if not returned:
        return "No matches" if found.exact else "No matches so far"
    if found.total > returned or not found.exact:
        least = "" if found.exact else "at least "
        return f"{returned:,} of {least}{format_count(found.total, 'match')}, in {format_count(files, 'file')}"
    return f"{format_count(returned, 'match')} in {format_count(files, 'file')}"


def _whole(found: SearchResult[FileHits], name: Name) -> str | None:
    """All of them; None where they are too much to be kept."""
    parts: list[str] = []
    size = 0
    for hits in found.items:
        parts.append(_grouped(hits, name))
        size += len(parts[-1])
        if size > MAX_RESULT_BYTES:
            return None
    return "\n".join(parts)


def _first(items: list[FileHits], most: int, context: int) -> Iterator[FileHits]:
    """So many matches in all, each with its neighbours."""
    for hits in items:
        if most <= 0:
            return
        count = hits.count_hits()
        yield hits if count <= most else FileHits(hits.path, _until(hits.lines, most, context))
        most -= count


def _until(lines: tuple[HitLine, ...], most: int, context: int) -> tuple[HitLine, ...]:
    """The lines up to a match, and its neighbours up to the next match: what a run knows of that depends on the run."""
    seen = 0
    for index, line in enumerate(lines):
        seen += bool(line.spans)
        if seen == most:
            rest = takewhile(lambda after: not after.spans, lines[index + 1 : index + 1 + context])
            return (*lines[: index + 1], *(after for after in rest if after.number <= line.number + context))
    return lines


def _grouped(hits: FileHits, name: Name) -> str:
    """The file's name on a line of its own, so that no colon in it is taken for another."""
    rows = [name(hits.path)]
    width = len(str(hits.lines[-1].number))
    apart = any(not line.spans for line in hits.lines)
    before: int | None = None
    for line in hits.lines:
        if apart and before is not None and line.number > before + 1:
            rows.append("  --")
        rows.append(f"  {line.number:>{width}}{':' if line.spans else '-'} {_text(line)}")
        before = line.number
    return "\n".join(rows) + "\n"


def _matches(items: list[FileHits], name: Name, context: int) -> Iterator[GrepMatch]:
    for hits in items:
        path = name(hits.path)
        texts = {line.number: _text(line) for line in hits.lines}
        for line in hits.lines:
            if line.spans:
                yield GrepMatch(
                    path=path,
                    line=line.number,
                    text=texts[line.number],
                    before=_near(texts, range(line.number - context, line.number)),
                    after=_near(texts, range(line.number + 1, line.number + context + 1)),
                )


def _near(texts: dict[int, str], numbers: range) -> tuple[str, ...]:
    return tuple(texts[number] for number in numbers if number in texts)


def _text(line: HitLine) -> str:
    """The line as text, and marked where it goes on."""
    text = decode_page(line.data, detect_encoding(line.data) or "utf-8")[0]
    visible = text if text.isprintable() else "".join(c if c == "\t" else escape_unprintable(c) for c in text)
    return f"{'…' if line.cut_before else ''}{visible}{'…' if line.cut_after else ''}"
