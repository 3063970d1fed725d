"""One language server of one project: started when it is needed, restarted when it ended."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from msgspec import Raw

from handrail.lsp.catalog import LanguageServerSpec, get_ending
from handrail.lsp.connection import (
    NOT_DECODED,
    ConnectionEndedError,
    LanguageProgram,
    LspConnection,
    LspRequestError,
)
from handrail.lsp.messages import DiagnosticReport, LspDiagnostic, PublishedDiagnostics, WorkProgress
from handrail.lsp.source_text import parse_uri, to_uri
from handrail.process.event_loop import EventLoop
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
"""Seconds before each restart of a server that ended before it gave an answer."""
_MAX_TIMEOUTS = 3
"""After so many requests in a row without an answer the server is ended."""
_REPEAT_SECONDS = 0.1
_SETTLE_SECONDS = 0.2
"""The silence after which the diagnostics of a server that sends them on its own are complete."""
_WAIT_SECONDS = 0.02
_MAX_OPEN = 100
"""Documents that are open at the server. The one that was used least recently is closed."""
_MAX_DIAGNOSTICS = 1_000
_LAST_STDERR_CHARS = 300
_CONTENT_MODIFIED, _SERVER_CANCELLED = -32801, -32802
"""Error codes of a request that can be repeated."""
CREATED, CHANGED, DELETED = 1, 2, 3
"""Changes of a file on disk."""

_CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "workspaceEdit": {"documentChanges": True},
        "symbol": {},
    },
    "textDocument": {
        "synchronization": {"didSave": True},
        "definition": {},
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
        self.published: tuple[LspDiagnostic, ...] | None = None
        """What the server sent on its own about this text. None: nothing yet."""


class _RunningServer:
    """A connection that was initialized, with what the server knows."""

    def __init__(self, program: LanguageProgram, spec: LanguageServerSpec, root: str) -> None:
        self.program = program
        self._spec, self._root = spec, root
        self.ready = time.monotonic()
        self.documents: OrderedDict[str, _Document] = OrderedDict()
        self.capabilities: dict[str, Any] = {}
        self.timeouts = 0
        self.progress_steps = 0
        """How often work of the server began or ended."""
        self._works = 0
        """How many long works of the server have begun and not ended."""
        self._indexing_since = 0.0
        self._last_published = 0.0
        self.connection = LspConnection(self._note)

    @property
    def is_indexing(self) -> bool:
        return self._works > 0

    @property
    def is_young(self) -> bool:
        return time.monotonic() - self.ready < _YOUNG_SECONDS

    async def initialize(self) -> None:
        await self.connection.open(self.program)
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
        answer = decode_answer(await self.connection.request("initialize", params), dict[str, Any])
        capabilities = answer.get("capabilities") if answer else None
        self.capabilities = capabilities if isinstance(capabilities, dict) else {}
        self.ready = time.monotonic()
        self.connection.notify("initialized", {})

    def synchronize(self, texts: Mapping[str, str]) -> None:
        """Tells the server the texts of documents, if it has others."""
        for path, text in texts.items():
            uri, notify = to_uri(path), self.connection.notify
            document = self.documents.get(path)
            if document is None:
                self.documents[path] = _Document(text)
                language = self._spec.languages.get(get_ending(path), "plaintext")
                item = {"uri": uri, "languageId": language, "version": 1, "text": text}
                notify("textDocument/didOpen", {"textDocument": item})
            elif document.text != text:
                document.text, document.version, document.published = text, document.version + 1, None
                named = {"uri": uri, "version": document.version}
                notify("textDocument/didChange", {"textDocument": named, "contentChanges": [{"text": text}]})
                notify("textDocument/didSave", {"textDocument": {"uri": uri}})
            self.documents.move_to_end(path)
        while len(self.documents) > _MAX_OPEN:
            self.close_document(next(iter(self.documents)))

    def close_document(self, path: str) -> None:
        if self.documents.pop(path, None) is not None:
            self.connection.notify("textDocument/didClose", {"textDocument": {"uri": to_uri(path)}})

    async def await_index(self) -> None:
        """Waits for a server that reads the project, but not for ever."""
        deadline = self._indexing_since + _INDEX_SECONDS
        while self.is_indexing and time.monotonic() < deadline and self.connection.ended is None:
            await asyncio.sleep(_WAIT_SECONDS)

    async def await_published(self, texts: Mapping[str, str]) -> dict[str, tuple[LspDiagnostic, ...]]:
        """Waits until the server has spoken about every document, and then says nothing for a moment."""
        while self.connection.ended is None:
            documents = {path: one for path, one in self.documents.items() if path in texts}
            found = {path: one.published for path, one in documents.items() if one.published is not None}
            if found.keys() == texts.keys() and time.monotonic() - self._last_published >= _SETTLE_SECONDS:
                return found
            await asyncio.sleep(_WAIT_SECONDS)
        raise ConnectionEndedError(self.connection.ended)

    def _note(self, method: str, params: Raw) -> None:
        with suppress(*NOT_DECODED):
            if method == "textDocument/publishDiagnostics":
                published = decode_json(params, PublishedDiagnostics)
                self._last_published = time.monotonic()
                document = self.documents.get(parse_uri(published.uri) or "")
                if document is not None and (published.version or document.version) >= document.version:
                    document.published = published.diagnostics[:_MAX_DIAGNOSTICS]
            elif method == "$/progress":
                kind = decode_json(params, WorkProgress).value.get("kind")
                if kind == "begin" and not self._works:
                    self._indexing_since = time.monotonic()
                if kind in {"begin", "end"}:
                    self.progress_steps += 1
                    self._works = max(0, self._works + (1 if kind == "begin" else -1))


class LanguageServer:
    """A server of a project. Every wait has an end.

    Any thread may use the plain functions. The coroutines belong to the event loop.
    """

    def __init__(self, spec: LanguageServerSpec, root: str, start: StartProgram, loop: EventLoop) -> None:
        """`root`: the real path of the project. ToolError from `start`: the program cannot be started."""
        self.spec, self.root = spec, root
        self._start, self._loop = start, loop
        self._changing = asyncio.Lock()
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
        return self._running is not None and self._running.connection.ended is None

    @property
    def is_indexing(self) -> bool:
        return self._running is not None and self._running.is_indexing

    def request(
        self,
        method: str,
        params: Mapping[str, Any],
        kind: type[Answer],
        texts: Mapping[str, str],
        cancelled: Cancelled | None,
        *,
        whole: bool,
    ) -> Answer | None:
        """Asks the server, which knows these texts by then. None if it knows nothing. ToolError if it failed.

        `whole`: the answer is about all files.
        """
        return decode_answer(self._loop.run(self._request(method, params, texts, whole), cancelled), kind)

    async def note_changes(self, changes: Mapping[str, int]) -> None:
        """Tells a running server which files were created, changed or deleted on disk."""
        running = self._running
        if running is None or not changes:
            return
        with suppress(ConnectionEndedError):
            for path, kind in changes.items():
                if kind == DELETED:
                    running.close_document(path)
            events = [{"uri": to_uri(path), "type": kind} for path, kind in changes.items()]
            running.connection.notify("workspace/didChangeWatchedFiles", {"changes": events})

    def list_open_texts(self) -> dict[str, str]:
        """The documents that the server has open, by path, the one used last at the end."""
        return {path: one.text for path, one in self._running.documents.items()} if self._running is not None else {}

    async def diagnose(self, texts: Mapping[str, str], seconds: float) -> dict[str, tuple[LspDiagnostic, ...]]:
        """The diagnostics of each document with this text. TIMEOUT if they do not come in time."""
        async with self._use() as running, asyncio.timeout(seconds):
            running.synchronize(texts)
            await running.await_index()
            if not running.capabilities.get("diagnosticProvider"):
                return await running.await_published(texts)
            return {path: await self._pull(running, path) for path in texts}

    async def close(self) -> None:
        self._is_closed = True  # ends a start
        if self._running is not None:
            with suppress(ConnectionEndedError):
                self._running.connection.notify("exit", None)
            self._running.connection.end("it was stopped")
        async with self._changing:
            await self._bury()

    # Start and end

    @asynccontextmanager
    async def _use(self) -> AsyncGenerator[_RunningServer]:
        """The running server. It is started if necessary, which a cancelled call does not interrupt.

        Turns the end of the server into a ToolError, and ends a server that answers no more.
        """
        starting = asyncio.create_task(self._start_once())
        starting.add_done_callback(lambda task: task.cancelled() or task.exception())
        running = await asyncio.shield(starting)
        try:
            yield running
            running.timeouts = self._failures = 0
        except ConnectionEndedError as error:
            raise ToolError("UNAVAILABLE", f"{self.name} ended during the call: {error}. Try again.") from None
        except LspRequestError as error:
            raise ToolError("UNAVAILABLE", f"{self.name} refused: {clip_text(to_one_line(str(error)), 300)}") from None
        except TimeoutError:
            running.timeouts += 1
            if running.timeouts >= _MAX_TIMEOUTS:
                running.connection.end("it does not answer")
            raise ToolError("TIMEOUT", f"{self.name} did not answer in time.") from None

    async def _start_once(self) -> _RunningServer:
        async with self._changing:
            if self._running is not None and self.is_running:
                return self._running
            await self._bury()
            if self._is_closed:
                raise ToolError("UNAVAILABLE", "The session is closed.")
            if self._failures > len(_PAUSES):
                advice = "It stays off in this session."
                raise ToolError("UNAVAILABLE", f"{self.name} ended {self._failures} times: {self._reason}. {advice}")
            if (left := self._not_before - time.monotonic()) > 0:
                raise ToolError("UNAVAILABLE", f"{self.name} ended: {self._reason}. Try again in {left:.0f} seconds.")
            return await self._launch()

    async def _launch(self) -> _RunningServer:
        program = await asyncio.to_thread(self._start, self.spec.words)
        self._running = running = _RunningServer(program, self.spec, self.root)
        try:
            if self._is_closed:
                raise ConnectionEndedError("it was stopped")
            async with asyncio.timeout(_START_SECONDS):
                await running.initialize()
        except (ConnectionEndedError, LspRequestError, ToolError, OSError) as error:
            running.connection.end(str(error) or f"it did not answer within {_START_SECONDS:.0f} seconds")
            await self._bury()
            code = "TIMEOUT" if isinstance(error, TimeoutError) else "UNAVAILABLE"
            raise ToolError(code, f"{self.name} does not start: {self._reason}.") from None
        return running

    async def _bury(self) -> None:
        """Ends the program of a connection that ended, if there is one, and counts the failure."""
        running, self._running = self._running, None
        if running is None:
            return
        program, ended = running.program, running.program.how_it_ended
        await asyncio.to_thread(program.end)
        tail = to_one_line(clip_text(program.stderr_tail[-_LAST_STDERR_CHARS:], _LAST_STDERR_CHARS))
        reason = ended or program.how_it_ended or running.connection.ended
        self._reason = f"{reason}{f' ({tail})' if tail else ''}"
        self._failures = len(_PAUSES) + 1 if program.never_ran else self._failures + 1
        self._not_before = time.monotonic() + _PAUSES[min(self._failures, len(_PAUSES)) - 1]

    # Requests

    async def _request(self, method: str, params: Mapping[str, Any], texts: Mapping[str, str], whole: bool) -> Raw:
        """Asks until the answer is certain.

        The server may still read the project, so it is asked again when it has read some. Not every server says that it
        reads. So a server that has just started has to repeat its answer about the whole project.
        """
        async with self._use() as running:
            running.synchronize(texts)
            before = b""
            while True:
                steps, answer = running.progress_steps, bytes(await self._ask(running, method, params))
                await running.await_index()
                has_read = running.progress_steps != steps
                is_repeated = answer == before and (answer != b"null" or not running.is_young)
                if is_repeated or not (has_read or (whole and running.is_young)):
                    return Raw(answer)
                before = answer
                if not has_read:
                    await asyncio.sleep(_YOUNG_PAUSE_SECONDS)

    async def _ask(self, running: _RunningServer, method: str, params: Mapping[str, Any]) -> Raw:
        """Repeats a request that the server dropped because a document changed."""
        async with asyncio.timeout(_REQUEST_SECONDS):
            while True:
                try:
                    return await running.connection.request(method, params)
                except LspRequestError as error:
                    if error.code not in {_CONTENT_MODIFIED, _SERVER_CANCELLED}:
                        raise
                await asyncio.sleep(_REPEAT_SECONDS)

    async def _pull(self, running: _RunningServer, path: str) -> tuple[LspDiagnostic, ...]:
        answer = await self._ask(running, "textDocument/diagnostic", {"textDocument": {"uri": to_uri(path)}})
        report = decode_answer(answer, DiagnosticReport)
        return report.items[:_MAX_DIAGNOSTICS] if report is not None else ()


def decode_answer(answer: Raw, kind: type[Answer]) -> Answer | None:
    """UNAVAILABLE if the answer has another shape."""
    try:
        return decode_json(answer, kind | None)
    except NOT_DECODED:
        raise ToolError(
            "UNAVAILABLE", "The language server sent an answer that does not follow its protocol."
        ) from None
