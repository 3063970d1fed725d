"""clangd, and with a deep run the language server for TypeScript."""

from pathlib import Path

import pytest
from projects import Make, choose, find_program, place_of, succeed

import oracles
from handrail import Handrail

CALL = 'const mark = "😀😀"; console.log(mark, greet("you"));\n'
SCRIPTS = {
    "package.json": '{"name": "sample"}',
    "tsconfig.json": '{"compilerOptions": {"strict": true}}',
    "a.ts": "export function greet(name: string): string {\n  return   name;\n}\n",
    "b.ts": f"import {{ greet }} from './a';\n{CALL}",
}
PROGRAM = {
    "a.h": "int greet(int n);\n",
    "a.c": '#include "a.h"\nint greet(int n) { return   n; }\n'
    'int main(void) { const char *mark = "😀"; return mark ? greet(1) : 0; }\n',
}


def write(workspace: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (workspace / name).write_text(text)


def list_places(opened: Handrail, tool: str, path: str, at: dict[str, int]) -> list[tuple[str, int, int]]:
    found = succeed(opened.call(tool, {"path": path, **at})).locations
    return [(one.file, one.line, one.character) for one in found]


def test_clangd_answers_every_tool(rail: Make, workspace: Path) -> None:
    assert find_program("clangd")
    write(workspace, PROGRAM)
    opened = rail(settings=choose("clangd", lsp__wait="30s"))
    at = place_of(PROGRAM["a.c"], "greet", 1)
    assert list_places(opened, "lsp_definition", "a.c", at) == [("a.c", 1, 4)]
    assert ("a.c", at["line"], at["character"]) in list_places(opened, "lsp_references", "a.c", at)
    assert "greet" in succeed(opened.call("lsp_hover", {"path": "a.c", **at})).text
    assert [one.name for one in succeed(opened.call("lsp_symbols", {"path": "a.c"})).symbols] == ["greet", "main"]
    changed = opened.call("edit", {"path": "a.c", "oldText": "return   n", "newText": "return   missing"})
    assert changed.meta.diagnostics is not None
    assert [one.line for one in changed.meta.diagnostics.added] == [1]
    assert opened.undo(changed.meta.undo).ok
    assert succeed(opened.call("lsp_diagnostics", {"paths": ["a.c"]})).diagnostics == ()
    assert opened.call("read", {"path": "a.c"}).ok
    formatted = opened.call("lsp_format", {"path": "a.c"})
    assert "int greet(int n) { return n; }\n" in (workspace / "a.c").read_text()
    assert opened.undo(formatted.meta.undo).ok
    assert (workspace / "a.c").read_text() == PROGRAM["a.c"]


@pytest.mark.deep
def test_typescript_answers_every_tool(rail: Make, workspace: Path, *, deep: bool) -> None:
    if not deep:
        pytest.skip("installs a package")
    modules = oracles.installed(oracles.LANGUAGE_SERVERS).modules
    program = f"{oracles.NODE} {modules}/typescript-language-server/lib/cli.mjs --stdio"
    write(workspace, SCRIPTS)
    toolchains = (str(modules.parent), str(oracles.NODE.parent))
    entry = f"typescript-language-server={program}"
    opened = rail(settings=choose(entry, lsp__wait="30s", sandbox__toolchains=toolchains))
    at = place_of(SCRIPTS["b.ts"], "greet", 1)
    assert list_places(opened, "lsp_definition", "b.ts", at) == [("a.ts", 0, 16)]
    places = [("a.ts", 0, 16), ("b.ts", 0, 9), ("b.ts", 1, at["character"])]
    assert list_places(opened, "lsp_references", "b.ts", at) == places
    assert "greet(name: string): string" in succeed(opened.call("lsp_hover", {"path": "b.ts", **at})).text
    assert "greet" in [one.name for one in succeed(opened.call("lsp_symbols", {"query": "gree"})).symbols]
    succeed(opened.call("lsp_diagnostics", {"paths": ["b.ts"]}))
    changed = opened.call("edit", {"path": "a.ts", "oldText": "name: string", "newText": "name: number"})
    assert changed.meta.diagnostics is not None
    assert {one.file for one in changed.meta.diagnostics.added} == {"a.ts", "b.ts"}
    assert opened.undo(changed.meta.undo).ok
    assert opened.call("read", {"path": "a.ts"}).ok
    renamed = succeed(opened.call("lsp_rename", {"path": "b.ts", **at, "newName": "salute"}))
    assert (renamed.files, renamed.edits) == (("a.ts", "b.ts"), 3)
    assert "import { salute } from" in (workspace / "b.ts").read_text()
    assert opened.call("lsp_format", {"path": "a.ts"}).ok
    assert "return name;" in (workspace / "a.ts").read_text()
