"""The edits of a rename, checked against the files that they are for."""

from collections.abc import Mapping

import msgspec

from handrail.lsp.messages import LspTextEdit, LspWorkspaceEdit
from handrail.lsp.servers import LanguageServers, ServedFile
from handrail.lsp.source_text import SourceText, parse_uri
from handrail.protocol.errors import ToolError
from handrail.workspace.roots import clip_path

_MAX_FILES = 500
_MAX_EDITS = 20_000
FileEdits = Mapping[str, tuple[LspTextEdit, ...]]
"""The edits of each file, by its path as results show it."""


class SymbolRename(msgspec.Struct, frozen=True):
    """What a server would change to rename a symbol."""

    old_name: str
    edits: FileEdits

    def apply(self, path: str, text: SourceText) -> str:
        """The text of one of the files after the rename. CONFLICT if the server knew another text."""
        for edit in self.edits[path]:
            if self.old_name not in text.slice(edit.range):
                line = edit.range.start.line + 1
                message = f"The language server knows another text of {clip_path(path)}: line {line} has no"
                raise ToolError("CONFLICT", f"{message} {self.old_name} there. Nothing was changed. Call again.")
        return text.apply(self.edits[path])


def plan_rename(servers: LanguageServers, path: str, line: int, character: int, name: str) -> SymbolRename:
    """Asks the server. NO_MATCH if there is nothing to rename."""
    file = servers.open_file(path)
    params = {**file.locate(line, character), "newName": name}
    edit = file.ask("textDocument/rename", LspWorkspaceEdit, params, whole=True)
    if file.server.is_indexing:
        raise ToolError("UNAVAILABLE", f"{file.server.name} still reads the project. Nothing was changed. Try again.")
    old_name = file.text.find_word(line, character)
    edits = _collect_edits(servers, edit or LspWorkspaceEdit())
    if not edits or not old_name:
        raise ToolError("NO_MATCH", f"There is nothing to rename at {line}:{character}. Both count from 0.")
    return SymbolRename(old_name, edits)


def plan_format(file: ServedFile) -> str:
    """The text of a file as its server formats it."""
    options = {"tabSize": 4, "insertSpaces": "\n\t" not in file.text.text}
    return file.text.apply(file.ask("textDocument/formatting", tuple[LspTextEdit, ...], {"options": options}) or ())


def _collect_edits(servers: LanguageServers, edit: LspWorkspaceEdit) -> FileEdits:
    if edit.has_file_operations:
        raise ToolError("UNAVAILABLE", "The rename would also move or delete files. Nothing was changed.")
    edits: dict[str, tuple[LspTextEdit, ...]] = {}
    for uri, some in edit.list_edits():
        path = parse_uri(uri)
        if path is None:
            raise ToolError("UNAVAILABLE", "The rename would change what is not a file. Nothing was changed.")
        shown = servers.show(path)
        # Some servers repeat an edit, one for each project that has the file.
        edits[shown] = tuple(dict.fromkeys((*edits.get(shown, ()), *some)))
    if len(edits) > _MAX_FILES or sum(map(len, edits.values())) > _MAX_EDITS:
        raise ToolError("LIMIT_EXCEEDED", f"The rename would change {len(edits)} files. Nothing was changed.")
    return {path: some for path, some in sorted(edits.items()) if some}
