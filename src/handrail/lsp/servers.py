"""The language servers of a session: which one serves a file, with the texts that it has to know."""

import os
import stat
import threading
from collections.abc import Mapping

import msgspec

from handrail.lsp.catalog import LanguageServerSpec, find_program, get_ending, list_names_for, list_programs
from handrail.lsp.messages import LspLocation
from handrail.lsp.server import LanguageServer, StartProgram
from handrail.lsp.source_text import SourceText, decode_source, parse_uri, to_uri
from handrail.protocol.errors import ToolError
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

    def locate(self, line: int, character: int) -> dict[str, object]:
        """The parameters of a request about a position. INVALID_ARGUMENT: the file has no such position."""
        position = self.text.to_lsp(line, character)
        return {"textDocument": {"uri": to_uri(self.path)}, "position": msgspec.to_builtins(position)}


class CodeLocation(msgspec.Struct, frozen=True, order=True):
    """A place in a file. Both numbers count from 0, the second one characters."""

    file: str
    """Relative in the workspace, otherwise absolute."""
    line: int
    character: int
    text: str = ""
    """The line, without its indentation. Empty for files outside of the workspace."""


class LanguageServers:
    """Any thread may use it. No server is started before a question needs it."""

    def __init__(
        self, workspace: Workspace, chosen: tuple[str, ...], environ: Mapping[str, str], start: StartProgram | None
    ) -> None:
        """`chosen` is `[lsp] servers`. `start` is None if no server may run. UsageError: an entry is wrong."""
        self._workspace, self._environ = workspace, environ
        self._programs, self._is_chosen = list_programs(chosen), bool(chosen)
        self._start = start
        self._lock = threading.Lock()
        self._servers: dict[tuple[str, str], LanguageServer] = {}
        self._found: dict[str, LanguageServerSpec | None] = {}
        self._times: dict[str, _FileTimes] = {}
        """What the files of a project were when its servers last heard of them."""

    def open_file(self, path: str) -> ServedFile:
        """A file as it is now, with its server. UNAVAILABLE if there is no server for it."""
        real, shown, data = self._read(path)
        server = self.find_server(real)
        text = decode_source(data)
        if text is None:
            raise ToolError("BINARY_FILE", f"{clip_path(path)} is not text.")
        self._note_changes(server.root)
        return ServedFile(real, shown, text, server)

    def find_server(self, path: str) -> LanguageServer:
        """The server for a real path, running or not."""
        server = self.find_optional_server(path)
        if server is None:
            names = list_names_for(self._programs, path)
            missing = f"Install one of {', '.join(names)}" if names else 'Name one in [lsp] servers: "*.x=program"'
            raise ToolError("UNAVAILABLE", f"No language server for {clip_path(os.path.basename(path))}. {missing}.")
        return server

    def find_optional_server(self, path: str) -> LanguageServer | None:
        """None if no installed server serves such files. UNAVAILABLE if no server may run."""
        root = self._workspace.main.path
        if self._start is None:
            raise ToolError("UNAVAILABLE", "No language server may run here: the session may start no programs.")
        ending = get_ending(path)
        with self._lock:
            if ending not in self._found:
                self._found[ending] = find_program(self._programs, path, self._environ, root, is_chosen=self._is_chosen)
            spec = self._found[ending]
            if spec is None:
                return None
            if not is_inside(path, root):
                raise ToolError("UNAVAILABLE", "Language servers see the files of the workspace only.")
            project = _find_project(path, root, spec.markers)
            server = self._servers.get((spec.name, project))
            if server is None:
                if len(self._servers) >= _MAX_SERVERS:
                    raise ToolError("LIMIT_EXCEEDED", f"{_MAX_SERVERS} language servers run already.")
                server = self._servers[spec.name, project] = LanguageServer(spec, project, self._start)
                if project not in self._times:
                    self._times[project] = _list_times(project)
            return server

    def list_project_servers(self) -> list[LanguageServer]:
        """The servers that run, otherwise those whose projects lie in the root of the workspace."""
        with self._lock:
            running = [server for server in self._servers.values() if server.is_running]
        root = self._workspace.main.path
        for spec in () if running else self._programs:
            if any(os.path.exists(os.path.join(root, marker)) for marker in spec.markers):
                server = self.find_optional_server(os.path.join(root, f"x.{next(iter(spec.languages))}"))
                running += [server] if server is not None and server not in running else []
        for server in running:
            self._note_changes(server.root)
        return running

    def locate(self, places: tuple[LspLocation, ...], known: ServedFile | None = None) -> list[CodeLocation]:
        """Locations for people. Other addresses than files are left out."""
        texts = {known.path: known.text} if known is not None else {}
        found: list[CodeLocation] = []
        for one in places:
            path, place = parse_uri(one.uri or one.target_uri), one.range or one.target_selection_range
            if path is None or place is None:
                continue
            if path not in texts:
                texts[path] = self._read_text(path)
            text, start = texts[path], place.start
            line = text.get_line(start.line).strip()
            # In a text that is not known, each character counts as one unit.
            character = text.to_character(start) if start.line < text.line_count and text.text else start.character
            found.append(CodeLocation(self.show(path), start.line, character, line))
        return found

    def show(self, path: str) -> str:
        root = self._workspace.main.path
        return os.path.relpath(path, root) if is_inside(path, root) else path

    def close(self) -> None:
        with self._lock:
            self._start = None
            servers = list(self._servers.values())
        for server in servers:
            server.close()

    def _read(self, path: str) -> tuple[str, str, bytes]:
        """The real path, the shown path and the bytes of a file."""
        with self._workspace.open_file(path) as opened:
            real = os.path.join(opened.root.path, opened.relative)
            shown = opened.real
        return real, shown, self._workspace.read_small_file(shown, MAX_FILE_BYTES)

    def _read_text(self, path: str) -> SourceText:
        """The text of a file of the workspace. Empty if it cannot be read."""
        try:
            inside = is_inside(path, self._workspace.main.path)
            data = self._workspace.read_small_file(path, MAX_FILE_BYTES) if inside else b""
        except ToolError:
            data = b""
        return decode_source(data) or SourceText("")

    def _note_changes(self, project: str) -> None:
        """Tells the servers of a project which files others changed: commands, people, an undo."""
        now = _list_times(project)
        with self._lock:
            before, self._times[project] = self._times[project], now
            servers = [one for (_, root), one in self._servers.items() if root == project]
        if now == before:
            return
        created, deleted = now.keys() - before.keys(), before.keys() - now.keys()
        changed = [path for path in now.keys() & before.keys() if now[path] != before[path]]
        for server in servers:
            for path in deleted:
                server.forget(path)
            server.note_changes(
                *(filter(_Relevance(server.spec), sorted(paths)) for paths in (created, changed, deleted))
            )


class _Relevance:
    """Whether a file matters to a server."""

    def __init__(self, spec: LanguageServerSpec) -> None:
        self._spec = spec

    def __call__(self, path: str) -> bool:
        return get_ending(path) in self._spec.languages or os.path.basename(path) in self._spec.markers


def _find_project(path: str, root: str, markers: tuple[str, ...]) -> str:
    """The outermost folder on the way to a file that has one of the markers. Without one it is the root."""
    folder = root
    for name in os.path.relpath(os.path.dirname(path), root).split("/"):
        if any(os.path.exists(os.path.join(folder, marker)) for marker in markers):
            return folder
        folder = os.path.normpath(os.path.join(folder, name))
    return folder if any(os.path.exists(os.path.join(folder, marker)) for marker in markers) else root


def _list_times(project: str) -> _FileTimes:
    """Change times and sizes of the regular files of a project."""
    times: _FileTimes = {}
    folders = [project]
    while folders and len(times) < _MAX_WATCHED:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders += [] if entry.name in _SKIPPED else [entry.path]
                    elif stat.S_ISREG((status := entry.stat(follow_symlinks=False)).st_mode):
                        times[entry.path] = status.st_mtime_ns, status.st_size
        except OSError:
            continue
    return times
