"""What the grants for plain edits and for local git never cover, and what an empty preview never tells."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.must_hold.unasked import answer, find_request, find_secrets, inspect, make_place, variables
from tests.policy.corpus.scratch import git

from handrail import Handrail
from handrail.mcp.results import build_call_result
from handrail.policy.changeset import are_tool_caches
from handrail.policy.config import Rule
from handrail.protocol.changes import Change
from handrail.protocol.wire import encode
from handrail.settings import Settings
from handrail.settings.load import LoadedSettings
from handrail.workspace.facts import list_tracked

Make = Callable[..., Handrail]


@pytest.fixture
def repository(workspace: Path) -> Path:
    """A branch `other` has files of names that are ignored or not tracked on `main`."""
    git(workspace, "init", "-q", "--template=", "-b", "main")
    for name in ("user.name", "user.email"):
        git(workspace, "config", name, "sam")
    (workspace / ".gitignore").write_text("build/\n")
    (workspace / "a.txt").write_text("one\n")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "Begin")
    git(workspace, "checkout", "-qb", "other")
    (workspace / "build").mkdir()
    for name in ("notes.txt", "build/made"):
        (workspace / name).write_text("of the branch\n")
    git(workspace, "add", "-f", "notes.txt", "build/made")
    git(workspace, "commit", "-qm", "Add notes")
    git(workspace, "checkout", "-q", "main")
    return workspace


@pytest.fixture
def granted(rail: Make, repository: Path) -> Handrail:
    """A session with both grants."""
    one = rail(mode="ask", on_permission="park")
    answer(one, one.call("write", {"path": "first.txt", "content": "x\n"}), "edits")
    answer(one, one.exec("git add first.txt"), "session")
    assert one.exec("git commit -m First").ok
    assert one.exec("echo two >> a.txt").meta.answered_by == "grant"
    assert one.exec("git commit -aqm Second").ok
    return one


# Local git


@pytest.mark.parametrize("command", ["git add *", "git add -A && git commit -m All"])
def test_git_adds_no_credential_that_was_hidden_from_it(granted: Handrail, repository: Path, command: str) -> None:
    (repository / ".env").write_text("KEY=planted-3f9c-dotenv\n")
    (repository / "server.pem").write_text("KEY=planted-3f9c-pem\n")
    (repository / "new.txt").write_text("new\n")
    before = inspect(repository)
    outcomes = [granted.exec(text) for text in (command, command, "git commit -am Again", "git show HEAD")]
    assert not outcomes[0].ok
    assert outcomes[0].error is not None
    assert "server.pem" in outcomes[0].error.message
    assert [find_secrets(granted, result) for result in outcomes] == [[]] * 4
    assert inspect(repository).modes == before.modes


def test_git_adds_files_beside_an_ignored_credential(granted: Handrail, repository: Path) -> None:
    (repository / ".env").write_text("KEY=planted-3f9c-dotenv\n")
    assert granted.exec("echo .env >> .gitignore").meta.answered_by == "grant"
    assert granted.exec("git add -A && git commit -m All").ok
    assert ".env" not in inspect(repository).modes
    assert ".gitignore" in inspect(repository).modes


@pytest.mark.parametrize("command", ["git checkout other", "git checkout other -- .", "git restore -s other ."])
def test_the_git_grant_overwrites_no_file_that_git_does_not_track(
    granted: Handrail, repository: Path, command: str
) -> None:
    mine = [repository / "build/made", *([repository / "notes.txt"] if "." in command else [])]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("of the person\n")
    result = granted.exec(command)
    assert [path.read_text() for path in mine] == ["of the person\n"] * len(mine)
    if result.error is not None:
        assert "does not track" in find_request(granted, result).reason


# Plain edits


_NO_PLAIN_EDITS = (
    "echo x >> a.txt; chmod 666 a.txt", "echo x >> a.txt; chmod 0 a.txt", "echo x > b; chmod 777 b", "chmod 600 a.txt",
    "echo x > b; chmod 606 b", "mkdir b; chmod 777 b", "ln a.txt b", "ln -s a.txt b", "echo x > b; ln b c", "rm a.txt",
    "mv a.txt b", "rm a.txt; mkdir a.txt",
)  # fmt: skip
_IN_REPOSITORY = (
    ".git/HEAD", ".git/index", ".git/refs/heads/main", ".git/packed-refs", ".git/x", "sub/.GIT/refs/x",
)  # fmt: skip


def test_plain_edits_set_no_modes_make_no_links_and_stay_out_of_repositories(
    granted: Handrail, repository: Path
) -> None:
    before = inspect(repository)
    kept = [command for command in _NO_PLAIN_EDITS if granted.exec(command).meta.answered_by]
    assert kept == []
    for path in _IN_REPOSITORY:
        find_request(granted, granted.call("write", {"path": path, "content": "x\n"}))
    assert inspect(repository) == before


# Empty previews


def test_the_output_of_a_preview_that_nobody_answered_reaches_no_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git tracks the credential, so a program can read it in git's objects."""
    place = make_place(tmp_path, tracked=True)
    for name, value in variables(place).items():
        monkeypatch.setenv(name, value)
    objects = "[zlib.decompress(open(f, 'rb').read()) for f in glob.glob('.git/objects/??/*')]"
    read = f"import glob, zlib; [print(one) for one in {objects} if b'planted' in one]"
    with place.open() as one:
        result = one.exec(f'python3 -c "{read}"; echo changed > changed.txt')
        preview = find_request(one, result).preview
        assert preview is not None
        assert "planted-3f9c" in (preview.output or "")
        assert find_secrets(one, result) == []
        assert "+changed" in preview.text
        assert "+changed" not in encode(build_call_result(result)).decode()


@pytest.mark.parametrize("verdict", ["ask", "deny"])
def test_a_command_asks_if_a_rule_protects_files_that_it_may_read(rail: Make, workspace: Path, verdict: str) -> None:
    (workspace / "private").mkdir()
    (workspace / "private/notes.txt").write_text("planted-3f9c-outside\n")
    rule = Rule(id="private", verdict="confirm" if verdict == "ask" else "deny", pattern="private/**", tool="*")
    one = rail(mode="ask", settings=LoadedSettings(settings=Settings(), sources={}, rules=(rule,)))
    result = one.exec("python3 -c \"print(open('priv' + 'ate/notes.txt').read())\"")
    assert find_secrets(one, result) == []
    find_request(one, result)


def test_caches_of_compiled_code_are_no_tool_caches() -> None:
    """A build runs what it finds there."""
    code = Change(path="node_modules/.cache/babel-loader/a.json", action="created", mode=0o644)
    lint = Change(path="node_modules/.cache/eslint/a", action="created", mode=0o644)
    assert not are_tool_caches((code,))
    assert are_tool_caches((lint,))


_READ = (
    "import glob, zlib; [print(zlib.decompress(open(f, 'rb').read())) for f in glob.glob('.git/**/??/*', recursive=1)"
)
_OBJECTS = f'python3 -c "{_READ} if len(f) > 40 and os.path.isfile(f)]"'.replace("import ", "import os, ")


@pytest.mark.parametrize("kind", ["version 4", "split", "submodule"])
def test_a_credential_that_git_tracks_in_any_way_stays_in_its_objects(rail: Make, workspace: Path, kind: str) -> None:
    inner = workspace / "sub" if kind == "submodule" else workspace
    inner.mkdir(exist_ok=True)
    git(workspace, "init", "-q", "--template=", "-b", "main")
    (workspace / ".git/modules").mkdir()
    where = ("--separate-git-dir", str(workspace / ".git/modules/sub")) if kind == "submodule" else ()
    git(inner, "init", "-q", "--template=", "-b", "main", *where)
    for name in (".editorconfig", ".env", ".envelope", "a.txt"):
        (inner / name).write_text("KEY=planted-3f9c-dotenv\n" if name == ".env" else f"{name}\n")
    git(inner, "add", "-A")
    if kind != "submodule":
        git(inner, "update-index", *(("--index-version", "4") if kind == "version 4" else ("--split-index",)))
    one = rail(mode="ask", on_permission="park")
    result = one.exec(_OBJECTS)
    preview = find_request(one, result).preview
    assert preview is not None
    assert "planted-3f9c-dotenv" in (preview.output or "")
    assert find_secrets(one, result) == []


@pytest.mark.parametrize("version", ["2", "4"])
def test_the_names_of_an_index_are_found_in_any_version(workspace: Path, version: str) -> None:
    names = [".editorconfig", ".env", "a/b/c.txt", "a/b/d.txt", "a/z", "b" * 200, "b" * 199 + "c", "c"]
    git(workspace, "init", "-q", "--template=")
    for name in names:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(name)
    git(workspace, "add", "-A")
    git(workspace, "update-index", "--index-version", version)
    missing = [".en", ".envx", "editorconfig", "a/b/e.txt", "d", "b" * 198]
    places = [str(workspace / name) for name in (*names, "a/b", *missing)]
    assert list_tracked(places, [str(workspace)]) == frozenset(places[: len(names) + 1])


def test_a_tracked_file_that_is_called_link_splits_no_index(rail: Make, workspace: Path) -> None:
    git(workspace, "init", "-q", "--template=")
    (workspace / "link").write_text("x\n")
    git(workspace, "add", "-A")
    (workspace / ".env").write_text("KEY=planted-3f9c-dotenv\n")
    result = rail(mode="ask", on_permission="park").exec("python3 -c 'print(1)'")
    assert result.meta.answered_by == "preview"
