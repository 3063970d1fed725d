"""The lsp_ tools with real language servers."""

from pathlib import Path

import pytest
from projects import ENABLED, PYTHON_SERVERS, Make, choose, code_of, fake, find_program, place_of, succeed

from handrail import Handrail
from handrail.lsp import server as language_server
from handrail.protocol.errors import UsageError

SOURCES = {
    "pyproject.toml": "[project]\nname = 'sample'\nversion = '1'\n",
    "animals.py": "class Dog:\n    def bark(self, times: int) -> str:\n"
    '        """Says it."""\n        return "wuff" * times\n',
    "main.py": 'from animals import Dog\n\nmark = "🐕🐕"; rex = Dog(); print(mark, rex.bark(2))\n',
}
MAIN = SOURCES["main.py"]
servers = pytest.mark.parametrize("server", PYTHON_SERVERS)


def open_rail(rail: Make, workspace: Path, server: str, **settings: object) -> Handrail:
    assert find_program({"basedpyright": "basedpyright-langserver"}.get(server, server))
    for name, text in SOURCES.items():
        (workspace / name).write_text(text)
    return rail(settings=choose(server, **settings))


@servers
def test_questions_about_a_position_behind_wide_characters(rail: Make, workspace: Path, server: str) -> None:
    opened = open_rail(rail, workspace, server)
    at = {"path": "main.py", **place_of(MAIN, "bark")}
    definition = opened.call("lsp_definition", at)
    assert [(one.file, one.line, one.character) for one in succeed(definition).locations] == [("animals.py", 1, 8)]
    assert "animals.py:1:8  def bark(self, times: int) -> str:" in definition.content
    found = succeed(opened.call("lsp_references", at)).locations
    assert [(one.file, one.line, one.character) for one in found] == [
        ("animals.py", 1, 8),
        ("main.py", 2, place_of(MAIN, "bark")["character"]),
    ]
    hover = succeed(opened.call("lsp_hover", at)).text
    assert "times: int" in hover
    assert "Says it." in hover


@servers
def test_symbols_of_a_file_and_of_the_project(rail: Make, workspace: Path, server: str) -> None:
    opened = open_rail(rail, workspace, server)
    listed = {
        (one.kind, one.container, one.name)
        for one in succeed(opened.call("lsp_symbols", {"path": "animals.py"})).symbols
    }
    assert {("class", "", "Dog"), ("method", "Dog", "bark")} <= listed
    found = succeed(opened.call("lsp_symbols", {"query": "bark"})).symbols
    assert [(one.file, one.line) for one in found if one.name == "bark"] == [("animals.py", 1)]
    assert code_of(opened.call("lsp_symbols", {})) == "INVALID_ARGUMENT"


@servers
def test_diagnostics_of_files_with_characters_not_code_units(rail: Make, workspace: Path, server: str) -> None:
    opened = open_rail(rail, workspace, server)
    (workspace / "main.py").write_text(MAIN.replace("bark(2)", "bark('2')"))
    [found] = [
        one
        for one in succeed(opened.call("lsp_diagnostics", {"paths": ["main.py", "animals.py"]})).diagnostics
        if one.severity == "error"
    ]
    assert (found.file, found.line, found.source) == ("main.py", 2, server)
    assert found.character == place_of(MAIN, "2))")["character"]


@servers
def test_a_rename_is_one_change_that_one_undo_takes_back(rail: Make, workspace: Path, server: str) -> None:
    opened = open_rail(rail, workspace, server)
    result = opened.call("lsp_rename", {"path": "main.py", **place_of(MAIN, "bark"), "newName": "woof"})
    data = succeed(result)
    assert (data.old_name, data.files, data.edits) == ("bark", ("animals.py", "main.py"), 2)
    assert (workspace / "main.py").read_text() == MAIN.replace("bark", "woof")
    assert "def woof(" in (workspace / "animals.py").read_text()
    assert opened.undo(result.meta.undo).ok
    assert {name: (workspace / name).read_text() for name in SOURCES} == SOURCES


def test_a_rename_asks_with_the_diff_of_every_file(rail: Make, workspace: Path) -> None:
    for name, text in SOURCES.items():
        (workspace / name).write_text(text)
    opened = rail(mode="ask", on_permission="park", settings=choose("ty"))
    result = opened.call("lsp_rename", {"path": "main.py", **place_of(MAIN, "bark"), "newName": "woof"})
    assert code_of(result) == "PERMISSION_REQUIRED"
    [request] = opened.waiting()
    assert request.preview is not None
    assert "+    def woof(" in request.preview.text
    assert "rex.woof(2)" in request.preview.text
    assert set(request.paths) == {"animals.py", "main.py"}
    outcome = opened.answer(request, "once")
    assert outcome.results[0].ok, outcome.results[0].content
    assert "woof" in (workspace / "main.py").read_text()


def test_a_rename_keeps_the_bytes_around_it(rail: Make, workspace: Path) -> None:
    opened = open_rail(rail, workspace, "ty")
    data = b"\xef\xbb\xbfdef small():\r\n    return '\xf0\x9f\x90\x95'\n\n\nx = small()\r\n"
    (workspace / "mixed.py").write_bytes(data)
    assert opened.call("lsp_rename", {"path": "mixed.py", "line": 4, "character": 5, "newName": "tiny"}).ok
    assert (workspace / "mixed.py").read_bytes() == data.replace(b"small", b"tiny")


def test_nothing_to_rename_is_said(rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_server, "_YOUNG_SECONDS", 0.3)
    opened = open_rail(rail, workspace, "ty")
    result = opened.call("lsp_rename", {"path": "main.py", "line": 1, "character": 0, "newName": "woof"})
    assert code_of(result) in {"NO_MATCH", "UNAVAILABLE"}


def test_a_position_that_the_file_does_not_have_is_refused(rail: Make, workspace: Path) -> None:
    opened = open_rail(rail, workspace, "ty")
    result = opened.call("lsp_hover", {"path": "main.py", "line": 99, "character": 0})
    assert code_of(result) == "INVALID_ARGUMENT"
    assert "it has 4 lines" in result.content
    result = opened.call("lsp_hover", {"path": "main.py", "line": 1, "character": 5})
    assert "line 1 has 0 characters" in result.content


def test_what_a_command_and_an_undo_change_is_known(rail: Make, workspace: Path) -> None:
    opened = open_rail(rail, workspace, "ty", lsp__diagnostics="off")
    ask = {"paths": ["main.py"]}
    assert succeed(opened.call("lsp_diagnostics", ask)).diagnostics == ()
    changed = opened.call("exec", {"command": "sed -i 's/Dog/Cat/' animals.py"})
    assert changed.ok
    assert [one.severity for one in succeed(opened.call("lsp_diagnostics", ask)).diagnostics] == ["error"]
    assert opened.undo(changed.meta.undo).ok
    assert succeed(opened.call("lsp_diagnostics", ask)).diagnostics == ()
    (workspace / "animals.py").unlink()
    assert [one.severity for one in succeed(opened.call("lsp_diagnostics", ask)).diagnostics] == ["error"]


def test_a_server_is_started_once_for_a_project_and_kept(rail: Make, workspace: Path) -> None:
    for folder in ("one", "one/inner", "two"):
        (workspace / folder).mkdir()
        (workspace / folder / "a.fake").write_text("foo\n")
    entry = fake(workspace, "counts")
    opened = rail(settings=choose(entry))
    asked = [
        succeed(opened.call("lsp_hover", {"path": f"{folder}/a.fake", "line": 0, "character": 0})).text
        for folder in ("one", "one/inner", "two", "one")
    ]
    assert len({text.partition(" ")[0] for text in asked}) == 1
    assert [text.partition(" ")[2] for text in asked] == ["1", "2", "3", "4"]


def test_formatting_needs_a_server_that_formats(rail: Make, workspace: Path) -> None:
    result = open_rail(rail, workspace, "ty").call("lsp_format", {"path": "main.py"})
    assert code_of(result) == "UNAVAILABLE"
    assert (workspace / "main.py").read_text() == MAIN


def test_tools_are_off_until_they_are_named(rail: Make, workspace: Path) -> None:
    assert not [name for name in rail().tool_names() if name.startswith("lsp_")]
    some = rail(session="two", settings=choose("ty", tools__enable=("lsp_hover",)))
    assert [name for name in some.tool_names() if name.startswith("lsp_")] == ["lsp_hover"]
    assert [name for name in ENABLED if name.startswith("lsp_")] == [
        name for name in rail(session="three", settings=choose("ty")).tool_names() if name.startswith("lsp_")
    ]


def test_a_file_without_a_server_names_what_to_install(rail: Make, workspace: Path) -> None:
    (workspace / "x.go").write_text("package x\n")
    (workspace / "x.zig").write_text("")
    opened = rail(settings=choose())
    result = opened.call("lsp_diagnostics", {"paths": ["x.zig"]})
    assert code_of(result) == "UNAVAILABLE"
    assert '[lsp] servers: "*.x=program"' in result.content
    if find_program("gopls") is None:
        assert "Install one of gopls" in opened.call("lsp_diagnostics", {"paths": ["x.go"]}).content


def test_a_program_in_the_workspace_runs_only_if_the_settings_name_it(
    rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = workspace / "bin" / "gopls"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 7\n")
    program.chmod(0o755)
    (workspace / "x.go").write_text("package x\n")
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    ask = ("lsp_hover", {"path": "x.go", "line": 0, "character": 0})
    assert "No language server" in rail(settings=choose()).call(*ask).content
    chosen = rail(session="two", settings=choose("gopls=bin/gopls"))
    assert "exit code 7" in chosen.call(*ask).content


@pytest.mark.parametrize("entry", ["no-such-server", "*.x", "*.=x", "x.y=z"])
def test_an_entry_that_names_no_server_is_refused(rail: Make, entry: str) -> None:
    with pytest.raises(UsageError, match=r"\[lsp\] servers"):
        rail(settings=choose(entry))
