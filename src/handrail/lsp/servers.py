"""The language servers of a session: which one serves a file, with the texts that it has to know."""

import asyncio
import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

from handrail.lsp.catalog import find_program, list_names_for, list_programs
from handrail.lsp.messages import LspLocation
from handrail.lsp.server import CHANGED, CREATED, DELETED, Answer, Cancelled, LanguageServer, StartProgram
from handrail.lsp.source_text import SourceText, decode_source, parse_uri, to_uri
from handrail.process.event_loop import EventLoop
from handrail.protocol.errors import ToolError
from handrail.protocol.wire import Wire
from handrail.workspace.roots import clip_path, is_inside
from handrail.workspace.workspace import Workspace

MAX_FILE_BYTES = 4 << 20
_MAX_SERVERS = 8
_MAX_WATCHED = 50_000
"""Files whose times are compared before a question. Changes of further ones are not noticed."""
_SKIPPED = frozenset(
    {".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", "target", "dist", "build", ".mypy_cache", ".tox"}
)
_FileTimes = dict[str, tuple[int, int]]


class ServedFile(msgspec.Struct, frozen=True):
    """A file of the workspace that a server serves."""

    path: str
    """The real path."""
    shown: str
    """The path as results show it."""
    text: SourceText
    server: LanguageServer

    def ask(
        self,
        method: str,
        kind: type[Answer],
        params: Mapping[str, object],
        cancelled: Cancelled | None = None,
        *,
        whole: bool = False,
    ) -> Answer | None:
        """The answer to a question about the file."""
        params = {"textDocument": {"uri": to_uri(self.path)}, **params}
        return self.server.request(method, params, kind, {self.path: self.text.text}, cancelled, whole=whole)

    def locate(self, line: int, character: int) -> dict[str, object]:
        """The parameter that names a position. INVALID_ARGUMENT: the file has no such position."""
        return {"position": msgspec.to_builtins(self.text.to_lsp(line, character))}


class SourceLocation(Wire, frozen=True, order=True, omit_defaults=False):
    """A place in a file."""

    file: str
    """Relative in the workspace, otherwise absolute."""
    line: int
    """From 0."""
    character: int
    """From 0, in characters."""


class LanguageServers:
    """Any thread may use it. No server is started before a question needs it."""

    def __init__(
        self,
        workspace: Workspace,
        chosen: tuple[str, ...],
        environ: Mapping[str, str],
        start: StartProgram | None,
        loop: EventLoop,
    ) -> None:
        """`chosen` is `[lsp] servers`. `start` is None if no server may run. UsageError: an entry is wrong."""
        self.loop = loop
        self._workspace, self._environ = workspace, environ
        self._programs, self._is_chosen = list_programs(chosen), bool(chosen)
        self._start = start
        self._lock = threading.Lock()
        self._servers: dict[tuple[str, str], LanguageServer] = {}
        self._times: dict[LanguageServer, _FileTimes] = {}
        """The files of servers as these last heard of them."""

    def open_file(self, path: str) -> ServedFile:
        """A file as it is now, with its server. UNAVAILABLE if there is no server for it."""
        with self._workspace.open_file(path) as opened:
            real, shown = os.path.join(opened.root.path, opened.relative), opened.real
        data = self._workspace.read_small_file(shown, MAX_FILE_BYTES)
        server = self.find_server(real)
        if server is None:
            names = list_names_for(self._programs, real)
            missing = f"Install one of {', '.join(names)}" if names else 'Name one in [lsp] servers: "*.x=program"'
            raise ToolError("UNAVAILABLE", f"No language server for {clip_path(os.path.basename(real))}. {missing}.")
        text = decode_source(data)
        if text is None:
            raise ToolError("BINARY_FILE", f"{clip_path(path)} is not text.")
        self._note_changes(server)
        return ServedFile(real, shown, text, server)

    def find_server(self, path: str) -> LanguageServer | None:
        """The server for a real path, running or not. UNAVAILABLE if none may run for it."""
        root = self._workspace.main.path
        if self._start is None:
            raise ToolError("UNAVAILABLE", "No language server may run here: the session may start no programs.")
        spec = find_program(self._programs, path, self._environ, root, is_chosen=self._is_chosen)
        if spec is None:
            return None
        if not is_inside(path, root):
            raise ToolError("UNAVAILABLE", "Language servers see the files of the workspace only.")
        project = _find_project(path, root, spec.markers)
        with self._lock:
            server = self._servers.get((spec.name, project))
            if server is None:
                if len(self._servers) >= _MAX_SERVERS:
                    raise ToolError("LIMIT_EXCEEDED", f"{_MAX_SERVERS} language servers run already.")
                server = self._servers[spec.name, project] = LanguageServer(spec, project, self._start, self.loop)
                self._times[server] = _list_times(server)
            return server

    def list_project_servers(self) -> list[LanguageServer]:
        """The servers that run, otherwise those whose projects lie in the root of the workspace."""
        with self._lock:
            running = [server for server in self._servers.values() if server.is_running]
        root = self._workspace.main.path
        for spec in () if running else self._programs:
            if _has_marker(root, spec.markers):
                server = self.find_server(os.path.join(root, f"x.{next(iter(spec.languages))}"))
                running += [server] if server is not None and server not in running else []
        for server in running:
            self._note_changes(server)
        return running

    def locate(self, places: Iterable[LspLocation], known: ServedFile | None = None) -> dict[SourceLocation, str]:
        """Locations with their lines, which are empty outside of the workspace. Only files have locations."""
        texts = {known.path: known.text} if known is not None else {}
        found: dict[SourceLocation, str] = {}
        for one in places:
            path = parse_uri(one.uri)
            if path is None or one.range is None:
                continue
            if path not in texts:
                texts[path] = self._read_text(path)
            text, start = texts[path], one.range.start
            # In a text that is not known, each character counts as one unit.
            character = text.to_character(start) if start.line < text.line_count and text.text else start.character
            found[SourceLocation(self.show(path), start.line, character)] = text.get_line(start.line).strip()
        return found

    def show(self, path: str) -> str:
        root = self._workspace.main.path
        return os.path.relpath(path, root) if is_inside(path, root) else path

    def close(self) -> None:
        with self._lock:
            self._start = None
        if self._servers:
            self.loop.run(self._close_servers())

    async def _close_servers(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    def _read_text(self, path: str) -> SourceText:
        """The text of a file of the workspace. Empty if it cannot be read."""
        try:
            inside = is_inside(path, self._workspace.main.path)
            data = self._workspace.read_small_file(path, MAX_FILE_BYTES) if inside else b""
        except ToolError:
            data = b""
        return decode_source(data) or SourceText("")

    def _note_changes(self, server: LanguageServer) -> None:
        """Tells a server which of its files others changed: commands, people, an undo."""
        now = _list_times(server)
        with self._lock:
            before, self._times[server] = self._times[server], now
        changes = {path: CHANGED if path in before else CREATED for path in now if now[path] != before.get(path)}
        changes |= dict.fromkeys(before.keys() - now.keys(), DELETED)
        if changes and server.is_running:
            self.loop.submit(server.note_changes(changes))


def _has_marker(folder: str, markers: tuple[str, ...]) -> bool:
    return any(os.path.exists(os.path.join(folder, marker)) for marker in markers)


def _find_project(path: str, root: str, markers: tuple[str, ...]) -> str:
    """The outermost folder on the way to a file that has one of the markers. Without one it is the root."""
    folders = [root]
    for name in os.path.relpath(os.path.dirname(path), root).split("/"):
        folders.append(os.path.normpath(os.path.join(folders[-1], name)))
    return next((folder for folder in folders if _has_marker(folder, markers)), root)


def _list_times(server: LanguageServer) -> _FileTimes:
    """Change times and sizes of the files of a project that matter to its server."""
    times: _FileTimes = {}
    for folder, folders, names in os.walk(server.root):
        folders[:] = [one for one in folders if one not in _SKIPPED]
        for path in (os.path.join(folder, name) for name in names if server.spec.is_relevant(name)):
            with suppress(OSError):
                status = os.lstat(path)
                times[path] = status.st_mtime_ns, status.st_size
        if len(times) >= _MAX_WATCHED:
            break
    return times
