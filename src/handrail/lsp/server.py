"""One language server of one project: started when it is needed, restarted when it ended."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from handrail.lsp.catalog import LanguageServerSpec, get_ending
from handrail.lsp.connection import ConnectionEndedError, LanguageProgram, LspConnection, LspRequestError
from handrail.lsp.frames import CONTENT_MODIFIED, SERVER_CANCELLED
from handrail.lsp.messages import (
    ConfigurationRequest,
    DiagnosticReport,
    LspDiagnostic,
    PublishedDiagnostics,
    WorkProgress,
)
from handrail.lsp.source_text import to_uri
from handrail.protocol.errors import ToolError
from handrail.protocol.text import clip_text, to_one_line
from handrail.protocol.version import VERSION
from handrail.protocol.wire import decode_json

Answer = TypeVar("Answer")
Cancelled = Callable[[], bool]
StartProgram = Callable[[tuple[str, ...]], LanguageProgram]
_START_SECONDS = 30.0
_REQUEST_SECONDS = 20.0
_INDEX_SECONDS = 20.0
"""How long a question waits until the server has read the project."""
_YOUNG_SECONDS, _YOUNG_PAUSE_SECONDS = 3.0, 0.25
_PAUSES = (0.0, 2.0, 8.0)
"""Seconds before each restart of a server that ended soon after its start."""
_STABLE_SECONDS = 300.0
_MAX_TIMEOUTS = 3
"""After so many requests in a row without an answer the server is ended."""
_REPEAT_SECONDS = 0.1
_SETTLE_SECONDS = 0.2
"""The silence after which the diagnostics of a server that sends them on its own are complete."""
_SILENCE_SECONDS = 1.0
"""The same for a server that says nothing at all about a change."""
_WAIT_SECONDS = 0.02
_MAX_OPEN = 100
"""Documents that are open at the server. The one that was used least recently is closed."""
_MAX_PUBLISHED = 5_000
_MAX_DIAGNOSTICS = 1_000
_MAX_TOKENS = 1_000
_LAST_STDERR_CHARS = 300
_NOT_DECODED = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_CREATED, _CHANGED, _DELETED = 1, 2, 3

_CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "workspaceEdit": {"documentChanges": True},
        "symbol": {},
    },
    "textDocument": {
        "synchronization": {"didSave": True},
        "definition": {"linkSupport": True},
        "references": {},
        "hover": {"contentFormat": ["plaintext", "markdown"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "rename": {"prepareSupport": False},
        "formatting": {},
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {"relatedDocumentSupport": False},
    },
    "window": {"workDoneProgress": True},
}


class _Document:
    def __init__(self, text: str) -> None:
        self.text = text
        self.version = 1
        self.sent = time.monotonic()


class _RunningServer:
    """A connection that was initialized, with what the server knows."""

    def __init__(self, program: LanguageProgram, spec: LanguageServerSpec, root: str) -> None:
        self._spec, self._root = spec, root
        self.program = program
        self.began = self.ready = time.monotonic()
        self.documents: OrderedDict[str, _Document] = OrderedDict()
        self.lock = threading.Lock()
        """Keeps messages about documents in their order."""
        self.published: OrderedDict[str, tuple[PublishedDiagnostics, float]] = OrderedDict()
        self.last_published = 0.0
        self.capabilities: dict[str, Any] = {}
        self.timeouts = 0
        self.indexing_since = 0.0
        self.progress_steps = 0
        """How often work of the server began or ended."""
        self._progress: set[str] = set()
        self.connection = LspConnection(program, self._note, self._serve)

    @property
    def is_indexing(self) -> bool:
        return bool(self._progress)

    @property
    def is_young(self) -> bool:
        return time.monotonic() - self.ready < _YOUNG_SECONDS

    def initialize(self, seconds: float, cancelled: Cancelled | None) -> None:
        folder = {"uri": to_uri(self._root), "name": self._root.rpartition("/")[2]}
        params = {
            "processId": None,  # the program is in a process namespace of its own
            "clientInfo": {"name": "handrail", "version": VERSION},
            "rootPath": self._root,
            "rootUri": folder["uri"],
            "workspaceFolders": [folder],
            "capabilities": _CAPABILITIES,
            "initializationOptions": self._spec.options,
        }
        answer = decode_answer(self.connection.request("initialize", params, seconds, cancelled), dict[str, Any])
        capabilities = answer.get("capabilities") if answer else None
        self.capabilities = capabilities if isinstance(capabilities, dict) else {}
        self.ready = time.monotonic()
        self.connection.notify("initialized", {})
        self.connection.notify("workspace/didChangeConfiguration", {"settings": self._spec.configuration})

    def synchronize(self, path: str, text: str) -> None:
        """Tells the server the text of a document, if it has another."""
        uri, notify = to_uri(path), self.connection.notify
        with self.lock:
            document = self.documents.get(path)
            if document is None:
                self.documents[path] = _Document(text)
                language = self._spec.languages.get(get_ending(path), "plaintext")
                item = {"uri": uri, "languageId": language, "version": 1, "text": text}
                notify("textDocument/didOpen", {"textDocument": item})
            elif document.text != text:
                document.text, document.sent = text, time.monotonic()
                document.version += 1
                named = {"uri": uri, "version": document.version}
                notify("textDocument/didChange", {"textDocument": named, "contentChanges": [{"text": text}]})
                notify("textDocument/didSave", {"textDocument": {"uri": uri}})
            self.documents.move_to_end(path)
            while len(self.documents) > _MAX_OPEN:
                self._close(next(iter(self.documents)))

    def close_document(self, path: str) -> None:
        with self.lock:
            self._close(path)

    def _close(self, path: str) -> None:
        if self.documents.pop(path, None) is not None:
            uri = to_uri(path)
            self.published.pop(uri, None)
            self.connection.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def find_published(self, path: str) -> tuple[LspDiagnostic, ...] | None:
        """What the server said about the present text of a document. None: nothing yet.

        A server that does not name versions may also leave out a document whose diagnostics stay the same.
        """
        document = self.documents.get(path)
        published, came = self.published.get(to_uri(path), (None, 0.0))
        if document is None or published is None:
            return None
        if published.version is not None:
            is_new = published.version >= document.version
        else:
            is_silent = time.monotonic() - document.sent >= _SILENCE_SECONDS
            is_new = is_silent or max(came, self.last_published) >= document.sent
        return published.diagnostics if is_new else None

    # In the thread of the connection

    def _note(self, method: str, params: Raw) -> None:
        with suppress(*_NOT_DECODED):
            if method == "textDocument/publishDiagnostics":
                published = decode_json(params, PublishedDiagnostics)
                some = msgspec.structs.replace(published, diagnostics=published.diagnostics[:_MAX_DIAGNOSTICS])
                self.last_published = time.monotonic()
                self.published[published.uri] = some, self.last_published
                if len(self.published) > _MAX_PUBLISHED:
                    self.published.popitem(last=False)
            elif method == "$/progress":
                progress = decode_json(params, WorkProgress)
                token, kind = str(progress.token)[:200], progress.value.kind
                self.progress_steps += kind in {"begin", "end"}
                if kind == "begin" and len(self._progress) < _MAX_TOKENS:
                    self.indexing_since = self.indexing_since if self._progress else time.monotonic()
                    self._progress.add(token)
                elif kind == "end":
                    self._progress.discard(token)

    def _serve(self, method: str, params: Raw) -> Any:
        match method:
            case "workspace/configuration":
                request = ConfigurationRequest()
                with suppress(*_NOT_DECODED):
                    request = decode_json(params, ConfigurationRequest)
                return [self._spec.configuration.get(one.section or "") for one in request.items[:100]]
            case "workspace/workspaceFolders":
                return [{"uri": to_uri(self._root), "name": self._root.rpartition("/")[2]}]
            case "workspace/applyEdit":
                return {"applied": False, "failureReason": "handrail applies the edits of a rename only"}
            case "client/registerCapability" | "client/unregisterCapability" | "window/workDoneProgress/create":
                return None
            case "window/showMessageRequest" | "workspace/diagnostic/refresh" | "workspace/codeLens/refresh":
                return None
            case _:
                raise LookupError(method)


class LanguageServer:
    """A server of a project. Any thread may use it. Every wait has an end."""

    def __init__(self, spec: LanguageServerSpec, root: str, start: StartProgram) -> None:
        """`root`: the real path of the project. ToolError from `start`: the program cannot be started."""
        self.spec, self.root = spec, root
        self._start = start
        self._lock = threading.Lock()
        self._running: _RunningServer | None = None
        self._failures = 0
        self._not_before = 0.0
        self._reason = ""
        self._is_closed = False

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def is_running(self) -> bool:
        return self._running is not None

    @property
    def is_indexing(self) -> bool:
        return self._running is not None and self._running.is_indexing

    def request(
        self,
        method: str,
        params: Mapping[str, Any],
        kind: type[Answer],
        *,
        texts: Mapping[str, str] | None = None,
        whole: bool = False,
        cancelled: Cancelled | None = None,
    ) -> Answer | None:
        """Asks the server, which knows these texts by then. None if it knows nothing. ToolError if it failed.

        A server that was still reading the project is asked again when it has read it. `whole`: the answer is about
        all files. Not every server says that it still reads them, so one that has just started is asked until it
        repeats its answer.
        """
        running = self._obtain(cancelled)
        with self._watch(running):
            for path, text in (texts or {}).items():
                running.synchronize(path, text)
            progress = running.progress_steps
            answer = self._ask(running, method, params, _REQUEST_SECONDS, cancelled)
            self._await_index(running, cancelled)
            if running.progress_steps != progress:
                answer = self._ask(running, method, params, _REQUEST_SECONDS, cancelled)
            before = b""
            while whole and running.is_young and (bytes(answer) != before or before == b"null"):
                time.sleep(_YOUNG_PAUSE_SECONDS)
                before = bytes(answer)
                answer = self._ask(running, method, params, _REQUEST_SECONDS, cancelled)
        return decode_answer(answer, kind)

    def diagnose(
        self, texts: Mapping[str, str], seconds: float, cancelled: Cancelled | None = None
    ) -> dict[str, tuple[LspDiagnostic, ...]]:
        """The diagnostics of each document with this text. TIMEOUT if they do not come in time."""
        running, deadline = self._obtain(cancelled), time.monotonic() + seconds
        with self._watch(running):
            for path, text in texts.items():
                running.synchronize(path, text)
            self._await_index(running, cancelled)
            if running.capabilities.get("diagnosticProvider"):
                return {path: self._pull(running, path, deadline, cancelled) for path in texts}
            return self._await_published(running, texts, deadline, cancelled)

    def note_changes(self, created: Iterable[str], changed: Iterable[str], deleted: Iterable[str]) -> None:
        """Tells a running server about files that changed on disk."""
        kinds = ((_CREATED, created), (_CHANGED, changed), (_DELETED, deleted))
        events = [{"uri": to_uri(path), "type": kind} for kind, paths in kinds for path in paths]
        if (running := self._running) is not None and events:
            with suppress(ConnectionEndedError):
                running.connection.notify("workspace/didChangeWatchedFiles", {"changes": events})

    def list_open_texts(self) -> dict[str, str]:
        """The documents that the server has open, by path, the one used last at the end."""
        running = self._running
        if running is None:
            return {}
        with running.lock:
            return {path: document.text for path, document in running.documents.items()}

    def forget(self, path: str) -> None:
        """Closes the document of a file that is gone."""
        if (running := self._running) is not None:
            with suppress(ConnectionEndedError):
                running.close_document(path)

    def close(self) -> None:
        self._is_closed = True  # ends a start
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            with suppress(ConnectionEndedError):
                running.connection.notify("exit", None)
            running.connection.close("it was stopped")

    # Start and end

    def _obtain(self, cancelled: Cancelled | None) -> _RunningServer:
        """The running server. It is started if necessary, by one thread."""
        deadline = time.monotonic() + _START_SECONDS
        while not self._lock.acquire(timeout=0.1):
            if cancelled is not None and cancelled():
                raise ToolError("CANCELLED", "The call was cancelled. Nothing was changed.")
            if time.monotonic() > deadline:
                raise ToolError("TIMEOUT", f"{self.name} did not start within {_START_SECONDS:.0f} seconds.")
        try:
            if self._running is not None and self._running.connection.ended is not None:
                self._bury(self._running, self._running.connection.ended)
            return self._running or self._launch(cancelled)
        finally:
            self._lock.release()

    def _launch(self, cancelled: Cancelled | None) -> _RunningServer:
        if self._is_closed:
            raise ToolError("UNAVAILABLE", "The session is closed.")
        if self._failures > len(_PAUSES):
            advice = "It stays off in this session."
            raise ToolError("UNAVAILABLE", f"{self.name} ended {self._failures} times: {self._reason}. {advice}")
        if (left := self._not_before - time.monotonic()) > 0:
            raise ToolError("UNAVAILABLE", f"{self.name} ended: {self._reason}. Try again in {left:.0f} seconds.")
        program = self._start(self.spec.words)
        try:
            running = _RunningServer(program, self.spec, self.root)
        except OSError as error:  # this process has too many open files
            program.end()
            raise ToolError("UNAVAILABLE", f"{self.name} cannot be connected ({error.strerror}).") from None
        try:
            running.initialize(_START_SECONDS, lambda: self._is_closed or (cancelled is not None and cancelled()))
        except (ConnectionEndedError, LspRequestError) as error:
            self._bury(running, str(error) or "it refused to start")
            raise ToolError("UNAVAILABLE", f"{self.name} does not start: {self._reason}.") from None
        except ToolError as error:
            self._bury(running, "it did not answer" if error.code == "TIMEOUT" else error.message, error.code)
            raise
        self._running = running
        return running

    def _bury(self, running: _RunningServer, reason: str, code: str = "") -> None:
        """Ends a server that failed. The caller holds the lock."""
        program = running.program
        ended = program.how_it_ended
        running.connection.close(reason)
        tail = to_one_line(clip_text(program.stderr_tail[-_LAST_STDERR_CHARS:], _LAST_STDERR_CHARS))
        self._reason = f"{ended or program.how_it_ended or reason}{f' ({tail})' if tail else ''}"
        self._running = None
        if code != "CANCELLED":
            is_stable = time.monotonic() - running.began >= _STABLE_SECONDS
            self._failures = 1 if is_stable else self._failures + 1
            if program.never_ran:
                self._failures = len(_PAUSES) + 1
            self._not_before = time.monotonic() + _PAUSES[min(self._failures, len(_PAUSES)) - 1]

    @contextmanager
    def _watch(self, running: _RunningServer) -> Generator[None]:
        """Turns the end of the server into a ToolError, and ends a server that answers no more."""
        try:
            yield
            running.timeouts = 0
        except ConnectionEndedError as error:
            raise ToolError("UNAVAILABLE", f"{self.name} ended during the call: {error}. Try again.") from None
        except LspRequestError as error:
            raise ToolError("UNAVAILABLE", f"{self.name} refused: {clip_text(to_one_line(str(error)), 300)}") from None
        except ToolError as error:
            if error.code == "TIMEOUT":
                running.timeouts += 1
                if running.timeouts >= _MAX_TIMEOUTS:
                    with self._lock:
                        if self._running is running:
                            self._bury(running, "it does not answer")
            raise

    # Requests

    def _ask(
        self,
        running: _RunningServer,
        method: str,
        params: Mapping[str, Any],
        seconds: float,
        cancelled: Cancelled | None,
    ) -> Raw:
        """Repeats a request that the server dropped because a document changed."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return running.connection.request(method, params, max(0.01, deadline - time.monotonic()), cancelled)
            except LspRequestError as error:
                if error.code not in {CONTENT_MODIFIED, SERVER_CANCELLED} or time.monotonic() >= deadline:
                    raise
                time.sleep(_REPEAT_SECONDS)

    def _await_index(self, running: _RunningServer, cancelled: Cancelled | None) -> None:
        """Waits for a server that reads the project, but not for ever."""
        deadline = running.indexing_since + _INDEX_SECONDS
        while running.is_indexing and time.monotonic() < deadline and running.connection.ended is None:
            if cancelled is not None and cancelled():
                raise ToolError("CANCELLED", "The call was cancelled. Nothing was changed.")
            time.sleep(_WAIT_SECONDS)

    def _pull(
        self, running: _RunningServer, path: str, deadline: float, cancelled: Cancelled | None
    ) -> tuple[LspDiagnostic, ...]:
        params = {"textDocument": {"uri": to_uri(path)}}
        answer = self._ask(running, "textDocument/diagnostic", params, deadline - time.monotonic(), cancelled)
        report = decode_answer(answer, DiagnosticReport)
        return report.items[:_MAX_DIAGNOSTICS] if report is not None else ()

    def _await_published(
        self, running: _RunningServer, paths: Iterable[str], deadline: float, cancelled: Cancelled | None
    ) -> dict[str, tuple[LspDiagnostic, ...]]:
        """Waits until the server has spoken about every document, and then says nothing for a moment."""
        while running.connection.ended is None:
            now = time.monotonic()
            found = {path: running.find_published(path) for path in paths}
            is_complete = None not in found.values()
            if is_complete and (now - running.last_published >= _SETTLE_SECONDS or now >= deadline):
                return {path: some for path, some in found.items() if some is not None}
            if cancelled is not None and cancelled():
                raise ToolError("CANCELLED", "The call was cancelled. Nothing was changed.")
            if now >= deadline:
                raise ToolError("TIMEOUT", f"{self.name} sent no diagnostics in time.")
            time.sleep(_WAIT_SECONDS)
        raise ConnectionEndedError(running.connection.ended)


def decode_answer(answer: Raw, kind: type[Answer]) -> Answer | None:
    """UNAVAILABLE if the answer has another shape."""
    try:
        return decode_json(answer, kind | None)
    except _NOT_DECODED:
        raise ToolError(
            "UNAVAILABLE", "The language server sent an answer that does not follow its protocol."
        ) from None
