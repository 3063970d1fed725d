"""The problems that a change causes: those after it without those before it."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from handrail.lsp.messages import LspDiagnostic
from handrail.lsp.server import LanguageServer
from handrail.lsp.servers import LanguageServers
from handrail.lsp.source_text import SourceText, clean_text
from handrail.protocol.errors import ToolError
from handrail.protocol.results import Diagnostic, NewDiagnostics
from handrail.protocol.text import clip_text

_SECONDS = 30.0
"""How long a check goes on after its call has returned."""
_MAX_PENDING = 4
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
        self._order = threading.Lock()
        self._pending = threading.Semaphore(_MAX_PENDING)
        self._closing = threading.Lock()
        self._is_closed = False

    def serves(self, path: str) -> bool:
        """Whether a language server is installed for a real path."""
        return self._find_server(path) is not None

    def check(self, changes: Sequence[ChangedText]) -> NewDiagnostics:
        """Waits for a limited time. Never raises."""
        if not self._pending.acquire(blocking=False):
            return NewDiagnostics(state="unchecked")
        work = _Work()
        threading.Thread(target=self._run, args=(work, changes), name="language-check", daemon=True).start()
        work.done.wait(self._seconds)
        return work.take()

    def close(self) -> None:
        """Ends the reports. The checks end with their servers."""
        with self._closing:
            self._is_closed = True

    def _find_server(self, path: str) -> LanguageServer | None:
        try:
            return self._servers.find_optional_server(path)
        except ToolError:
            return None

    def _run(self, work: "_Work", changes: Sequence[ChangedText]) -> None:
        found = NewDiagnostics(state="unchecked")
        try:
            with self._order:
                found = self._compare(changes)
        except ToolError:
            pass
        finally:
            self._pending.release()
            if work.finish(found):
                self._report_late(found)

    def _report_late(self, found: NewDiagnostics) -> None:
        texts = render_new(found)
        with self._closing:
            if texts and not self._is_closed:
                self._report("\n".join(texts))

    def _compare(self, changes: Sequence[ChangedText]) -> NewDiagnostics:
        by_server: dict[LanguageServer, list[ChangedText]] = {}
        for change in changes:
            if (server := self._find_server(change.path)) is not None:
                by_server.setdefault(server, []).append(change)
        added, fixed = list[Diagnostic](), 0
        for server, some in by_server.items():
            new, gone = self._compare_at(server, some)
            added += new
            fixed += gone
        return NewDiagnostics(state="checked", added=tuple(added), fixed=fixed)

    def _compare_at(self, server: LanguageServer, changes: Sequence[ChangedText]) -> tuple[list[Diagnostic], int]:
        paths = {change.path for change in changes}
        others = {path: text for path, text in server.list_open_texts().items() if path not in paths}
        others = dict(list(others.items())[-_MAX_OTHERS:])
        before = self.diagnose(server, others | {one.path: one.before for one in changes if one.before is not None})
        created = [change.path for change in changes if change.before is None]
        deleted = [change.path for change in changes if change.after is None]
        for path in deleted:
            server.forget(path)
        server.note_changes(created, (), deleted)
        after = self.diagnose(server, others | {one.path: one.after for one in changes if one.after is not None})
        old, new = Counter(map(_to_key, before)), list[Diagnostic]()
        for one in after:
            if old[_to_key(one)] > 0:
                old[_to_key(one)] -= 1
            else:
                new.append(one)
        return new, old.total()

    def diagnose(self, server: LanguageServer, texts: Mapping[str, str]) -> list[Diagnostic]:
        found = server.diagnose(texts, _SECONDS)
        return [
            one
            for path, some in found.items()
            for one in build_diagnostics(self._servers.show(path), SourceText(texts[path]), some, server.name)
            if one.severity in self._severities
        ]


class _Work:
    """A check that a call waits for."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self._lock = threading.Lock()
        self._found: NewDiagnostics | None = None
        self._is_left = False

    def take(self) -> NewDiagnostics:
        """The problems found so far. Later ones are reported by an event."""
        with self._lock:
            self._is_left = True
            return self._found or NewDiagnostics(state="checking")

    def finish(self, found: NewDiagnostics) -> bool:
        """Whether the call has returned already."""
        with self._lock:
            self._found = found
            self.done.set()
            return self._is_left


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
