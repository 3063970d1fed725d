"""The problems that a change causes: those after it without those before it."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress

import msgspec

from handrail.lsp.messages import LspDiagnostic
from handrail.lsp.server import CREATED, DELETED, LanguageServer
from handrail.lsp.servers import LanguageServers
from handrail.lsp.source_text import SourceText, clean_text
from handrail.protocol.errors import ToolError
from handrail.protocol.results import Diagnostic, NewDiagnostics
from handrail.protocol.text import clip_text

_SECONDS = 30.0
"""How long a check goes on after its call has returned."""
_MAX_OTHERS = 10
"""Other open documents in which a change may cause problems."""
_MAX_MESSAGE_CHARS = 500
_SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}


class ChangedText(msgspec.Struct, frozen=True):
    """A file before and after a change. None: there was, or is, none."""

    path: str
    """The real path."""
    before: str | None
    after: str | None


class ChangeCheck:
    """Compares diagnostics before and after changes, one change after the other."""

    def __init__(
        self, servers: LanguageServers, severities: Iterable[str], seconds: float, report: Callable[[str], None]
    ) -> None:
        """`seconds`: how long a change waits. `report` gets a text about problems that were found later."""
        self._servers, self._severities = servers, frozenset(severities)
        self._seconds, self._report = seconds, report
        self._order = asyncio.Lock()

    def serves(self, path: str) -> bool:
        """Whether a language server is installed for a real path."""
        with suppress(ToolError):
            return self._servers.find_server(path) is not None
        return False

    def check(self, changes: Sequence[ChangedText]) -> NewDiagnostics:
        """Waits for a limited time. Never raises."""
        try:
            by_server: dict[LanguageServer, list[ChangedText]] = {}
            for change in changes:
                if (server := self._servers.find_server(change.path)) is not None:
                    by_server.setdefault(server, []).append(change)
            work = self._servers.loop.submit(self._check(by_server))
            try:
                return work.result(self._seconds)
            except TimeoutError:
                self._servers.loop.submit(self._report_late(work))
                return NewDiagnostics(state="checking")
        except (ToolError, CancelledError):  # CancelledError: the session is closed
            return NewDiagnostics(state="unchecked")

    async def _check(self, by_server: Mapping[LanguageServer, Sequence[ChangedText]]) -> NewDiagnostics:
        async with self._order:
            found = [await self._compare(server, some) for server, some in by_server.items()]
        added = tuple(one for some, _ in found for one in some)
        return NewDiagnostics(state="checked", added=added, fixed=sum(fixed for _, fixed in found))

    async def _report_late(self, work: "Future[NewDiagnostics]") -> None:
        with suppress(ToolError):
            if texts := render_new(await asyncio.wrap_future(work)):
                await asyncio.to_thread(self._report, "\n".join(texts))

    async def _compare(self, server: LanguageServer, changes: Sequence[ChangedText]) -> tuple[list[Diagnostic], int]:
        """The new problems, with the number of those that are gone."""
        paths = {one.path for one in changes}
        others = [(path, text) for path, text in server.list_open_texts().items() if path not in paths][-_MAX_OTHERS:]
        before = [(one.path, one.before) for one in changes if one.before is not None]
        after = [(one.path, one.after) for one in changes if one.after is not None]
        old = Counter(map(_to_key, await self._diagnose(server, dict(others + before))))
        created = dict.fromkeys(paths - dict(before).keys(), CREATED)
        await server.note_changes(created | dict.fromkeys(paths - dict(after).keys(), DELETED))
        new: list[Diagnostic] = []
        for one in await self._diagnose(server, dict(others + after)):
            if old[_to_key(one)] > 0:
                old[_to_key(one)] -= 1
            else:
                new.append(one)
        return new, old.total()

    async def _diagnose(self, server: LanguageServer, texts: Mapping[str, str]) -> list[Diagnostic]:
        found = await server.diagnose(texts, _SECONDS)
        return [
            one
            for path, some in found.items()
            for one in build_diagnostics(self._servers.show(path), SourceText(texts[path]), some, server.name)
            if one.severity in self._severities
        ]


def build_diagnostics(
    file: str, text: SourceText, diagnostics: Iterable[LspDiagnostic], server: str
) -> list[Diagnostic]:
    """The diagnostics of a file in their order, severest first."""
    found = [
        Diagnostic(
            file=file,
            line=one.range.start.line,
            character=text.to_character(one.range.start),
            severity=_SEVERITIES.get(one.severity or 1, "error"),  # pyright: ignore[reportArgumentType]
            message=clean_text(one.message, _MAX_MESSAGE_CHARS),
            source=clip_text(one.source or server, 80),
            code=clip_text(str(one.code), 80) if isinstance(one.code, str | int) else "",
        )
        for one in diagnostics
    ]
    rank = list(_SEVERITIES.values()).index
    return sorted(found, key=lambda one: (rank(one.severity), one.line, one.character))


def render_diagnostic(one: Diagnostic) -> str:
    """One line, with the line number as `read` shows it."""
    rule = f" ({one.source}{f': {one.code}' if one.code else ''})"
    message = " ".join(one.message.split())
    return f"{one.file} line {one.line + 1}: {one.severity}: {message}{rule}"


MAX_RENDERED = 10


def render_new(found: NewDiagnostics) -> tuple[str, ...]:
    """The new problems as texts for models and people."""
    if found.state == "checking":
        return ("The language server still checks this change. lsp_diagnostics lists the problems of a file.",)
    shown = tuple(f"New problem: {render_diagnostic(one)}" for one in found.added[:MAX_RENDERED])
    left = len(found.added) - len(shown)
    return (*shown, f"{left} more new problems; lsp_diagnostics lists them.") if left else shown


def _to_key(one: Diagnostic) -> tuple[str, ...]:
    """What stays the same of a diagnostic whose line moved."""
    return one.file, one.severity, one.message, one.source, one.code
