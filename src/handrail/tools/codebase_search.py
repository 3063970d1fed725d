"""The tool codebase_search."""

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from handrail.code.crawler import refresh_index
from handrail.code.ranker import rank_chunks
from handrail.protocol.errors import ToolError
from handrail.protocol.text import escape_unprintable, format_count
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.settings.embeddings import Embeddings
from handrail.store.code_index import CodeIndex
from handrail.tools.search import SessionSearch
from handrail.tools.tool import Context, Output, Tool, Touches
from handrail.workspace.file_state import read_start
from handrail.workspace.roots import Root
from handrail.workspace.search.engine import SearchScope
from handrail.workspace.text import decode_text
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.code.crawler import Coverage
    from handrail.code.ranker import RankedChunk

INDEX_SECONDS = 5.0
"""How long a call indexes files before it searches."""
_MAX_PREVIEW_LINES = 6
_MAX_LINE_CHARS = 160
_MAX_READ_BYTES = 1 << 20

FindFolder = Callable[[str], str]
"""Finds the folder of the index of a root."""


class CodebaseSearchArguments(Arguments, frozen=True):
    """The arguments of codebase_search."""

    query: Annotated[
        str,
        Meta(min_length=1, max_length=1_000, description="The subject of the code, in words or names of the code."),
    ]
    paths: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=1_000)], ...],
        Meta(max_length=100, description="Folders and files to search in; empty for the workspace."),
    ] = ()
    max_results: Annotated[int, Meta(ge=1, le=50, description="Maximum results.", extra={"unit": "results"})] = 10


class CodeHit(Wire, frozen=True, omit_defaults=False):
    """A part of a file that the query found."""

    path: str
    line: int
    end_line: int
    name: str | None
    """The definition, with the definitions around it. Null for lines outside of definitions."""
    kind: str | None
    score: float
    """Comparable within one result."""
    reason: str
    """Which words of the query are where."""
    preview: str


class CodebaseSearchData(Wire, frozen=True, omit_defaults=False):
    """The best parts, the best first."""

    query: str
    method: Literal["lexical", "semantic"]
    hits: tuple[CodeHit, ...]
    indexed: int
    """Files that were searched."""
    files: int
    """Files that there are, as far as they were listed."""


CODEBASE_SEARCH = ToolSpec(
    name="codebase_search",
    title="Search code",
    description=(
        "Find code by its subject: functions, classes and other parts, ranked by their words, names and paths. Use "
        "the words that the code would use. Each result has file, lines and the reason. Ignored files and credentials "
        "are not searched. The first calls in a large workspace search a part of it, and say how much."
    ),
    arguments=CodebaseSearchArguments,
    data=CodebaseSearchData,
    permissions=("fs.read",),
    auto_execute=True,
    enabled=False,
    stage="look",
    intent="find code by its subject",
    not_for=(("an exact text or name", "grep"), ("files by name", "find")),
)


def build_codebase_search_tool(
    searching: SessionSearch, find_folder: FindFolder, embeddings: Embeddings | None = None
) -> Tool:
    return Tool(CODEBASE_SEARCH, partial(_run, searching, find_folder, embeddings), _declare_touches)


def _declare_touches(arguments: CodebaseSearchArguments) -> Touches:
    return Touches(reads=arguments.paths or (".",))


def _run(
    searching: SessionSearch,
    find_folder: FindFolder,
    embeddings: Embeddings | None,
    context: Context,
    arguments: CodebaseSearchArguments,
) -> Output:
    found = _CodeResults(context, arguments, None if context.limits.offline else embeddings)
    for root, scopes in _group_by_root(context.workspace, arguments.paths).items():
        with closing(open_index(find_folder, root)) as index:
            coverage = refresh_root(searching, context.workspace, root, index, arguments.query, context.cancelled)
            context.check_cancelled()
            found.add(index, root, scopes, coverage)
    return found.build_output()


def open_index(find_folder: FindFolder, root: Root) -> "CodeIndex":
    return CodeIndex(find_folder(root.path))


def refresh_root(
    searching: SessionSearch,
    workspace: Workspace,
    root: Root,
    index: "CodeIndex",
    query: str,
    cancelled: Callable[[], bool],
) -> "Coverage":
    """Index the changed files of a root, as far as the time allows."""

    scope = SearchScope(
        root.descriptor,
        root.descriptor,
        ".",
        workspace.kernel,
        ignore=searching.ignore,
        credential_files=workspace.credential_files,
    )
    engine = searching.engines(workspace).whole
    return refresh_index(index, engine, scope, query, INDEX_SECONDS, cancelled)


def _group_by_root(workspace: Workspace, paths: Sequence[str]) -> dict[Root, list[bytes]]:
    """The roots to search, with the files and folders in them."""
    scopes: dict[Root, list[bytes]] = {}
    for path in paths or (".",):
        try:
            opened = workspace.open_folder(path)
        except ToolError as error:
            if error.code != "NOT_A_DIRECTORY":
                raise
            opened = workspace.open_file(path)
        with opened:
            scopes.setdefault(opened.root, []).append(os.fsencode(opened.relative))
    return scopes


class _CodeResults:
    """The results of one call, from all roots."""

    def __init__(self, context: Context, arguments: CodebaseSearchArguments, embeddings: Embeddings | None) -> None:
        self._context, self._arguments, self._embeddings = context, arguments, embeddings
        self._hits: list[CodeHit] = []
        self._warnings: list[str] = []
        self._indexed = self._files = 0
        self._is_complete = True

    def add(self, index: "CodeIndex", root: Root, scopes: Sequence[bytes], coverage: "Coverage") -> None:
        most = self._arguments.max_results
        if self._embeddings is None:
            ranked = rank_chunks(index, self._arguments.query, scopes, most)
        else:
            ranked = self._rank_by_meaning(index, scopes)[:most]
        hits = (_build_hit(self._context.workspace, root, one) for one in ranked)
        self._hits += [hit for hit in hits if hit is not None]
        self._indexed += coverage.indexed
        self._files += coverage.files
        self._is_complete &= coverage.walked and coverage.indexed == coverage.files

    def _rank_by_meaning(self, index: "CodeIndex", scopes: Sequence[bytes]) -> "list[RankedChunk]":
        from handrail.code import embeddings  # noqa: PLC0415  few have a model

        query, settings = self._arguments.query, self._embeddings
        ranked = rank_chunks(index, query, scopes, max(self._arguments.max_results, embeddings.RANKED_AGAIN))
        if settings is not None:
            try:
                return embeddings.rank_by_meaning(index, settings, query, ranked)
            except embeddings.EmbeddingError as error:
                note = f"The model of [search] embeddings could not be used ({error}). The ranking is by words only."
                self._warnings.append(note)
                self._embeddings = None
        return ranked

    def build_output(self) -> Output:
        hits = sorted(self._hits, key=lambda hit: -hit.score)[: self._arguments.max_results]
        method = "lexical" if self._embeddings is None else "semantic"
        count = format_count(len(hits), "result") if hits else "No results"
        least = "" if self._is_complete else f" of {self._files:,}"
        searched = f"{self._indexed:,}{least} files are indexed"
        if not self._is_complete:
            self._warnings.append(f"Only {searched} so far. Search again to index more.")
        return Output(
            summary=f"{count} ({method})",
            content="".join(map(_render_hit, hits)) + f"{count} by {method} search; {searched}.\n",
            data=CodebaseSearchData(
                query=self._arguments.query,
                method=method,
                hits=tuple(hits),
                indexed=self._indexed,
                files=self._files,
            ),
            meta={"returned": len(hits), "files": len({hit.path for hit in hits})},
            warnings=tuple(self._warnings),
        )


def _build_hit(workspace: Workspace, root: Root, ranked: "RankedChunk") -> CodeHit | None:
    """The hit with lines that the file has now. None if the file is gone or may not be read."""
    chunk = ranked.chunk
    path = root.display_path(os.fsdecode(chunk.path))
    try:
        with workspace.open_file(path) as opened:
            decoded = decode_text(read_start(opened.descriptor, _MAX_READ_BYTES))
    except (ToolError, OSError):
        return None
    lines = decoded.text.split("\n")[chunk.line - 1 : chunk.end_line] if decoded is not None else []
    if not lines:
        return None
    shown = [escape_unprintable(line.rstrip())[:_MAX_LINE_CHARS] for line in lines[:_MAX_PREVIEW_LINES]]
    return CodeHit(
        path=escape_unprintable(path),
        line=chunk.line,
        end_line=chunk.end_line,
        name=".".join(filter(None, (chunk.parent, chunk.name))) or None,
        kind=chunk.kind or None,
        score=ranked.score,
        reason=ranked.reason,
        preview="\n".join(shown),
    )


def _render_hit(hit: CodeHit) -> str:
    title = f" {hit.kind} {hit.name}" if hit.name else ""
    more = hit.end_line - hit.line + 1 - hit.preview.count("\n") - 1
    rest = f"    … {format_count(more, 'more line')}\n" if more > 0 else ""
    preview = "".join(f"    {line}\n" for line in hit.preview.split("\n"))
    return f"{hit.path}:{hit.line}-{hit.end_line}{title} ({hit.reason})\n{preview}{rest}\n"
