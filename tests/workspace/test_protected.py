"""Credentials are neither read nor written, by any spelling, link or race; other special names ask before a change."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.protocol.errors import ToolError
from handrail.workspace.workspace import Workspace

Rail = Callable[..., Handrail]
SECRET = "TOKEN=12345"


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".ENV",
        ".Env",
        ".env.local",
        ".env.production",
        ".env.example.local",
        ".envrc",
        ".ssh/id_rsa",
        ".SSH/config",
        ".\u017fsh/config",
        "deep/er/.aws/credentials",
        "id_ed25519",
        "server.key",
        "SERVER.PEM",
        ".netrc",
        ".git-credentials",
        ".npmrc",
        "./.env",
        "deep/../.env",
    ],
)
def test_a_credential_is_neither_read_nor_written_nor_listed(
    rail: Rail, workspace: Path, resolver: str, path: str
) -> None:
    file = workspace / path
    file.parent.mkdir(parents=True, exist_ok=True)
    (workspace / "deep").mkdir(exist_ok=True)
    file.write_text(SECRET)
    one = rail(mode="full", resolver=resolver)
    for spelled in (path, f"{workspace}/{path}"):
        for result in (one.read(spelled), one.write(spelled, "x")):
            assert result.error.code == "POLICY_DENIED"
            assert result.error.details["rule"] == "fs.secret"
            assert SECRET not in result.content
    assert file.read_text() == SECRET


@pytest.mark.parametrize("path", [".env", ".env.local", ".ssh/new_key", "certs/new.pem"])
def test_a_credential_is_not_created(rail: Rail, workspace: Path, resolver: str, path: str) -> None:
    assert rail(mode="full", resolver=resolver).write(path, "x").error.code == "POLICY_DENIED"
    assert not list(workspace.iterdir())


@pytest.mark.parametrize(
    "path", [".env.example", ".env.sample", ".env.local.template", "environment", "env", ".environment", "id_rsa.pub"]
)
def test_templates_and_public_parts_are_ordinary_files(rail: Rail, resolver: str, path: str) -> None:
    one = rail(resolver=resolver)
    assert one.write(path, "PORT=\n").ok
    assert one.read(path).content == "PORT=\n"


@pytest.mark.parametrize("target", [".env", "{workspace}/.env", "folder/../.env", "hop"])
def test_a_link_to_a_credential_is_refused(rail: Rail, workspace: Path, resolver: str, target: str) -> None:
    (workspace / ".env").write_text(SECRET)
    (workspace / "folder").mkdir()
    (workspace / "hop").symlink_to(".env")
    (workspace / "notes.txt").symlink_to(target.format(workspace=workspace))
    one = rail(mode="full", resolver=resolver)
    assert one.read("notes.txt").error.details["rule"] == "fs.secret"
    assert one.write("notes.txt", "x").error.details["rule"] == "fs.secret"
    assert (workspace / ".env").read_text() == SECRET


def test_a_link_that_is_called_like_a_credential_is_refused_too(rail: Rail, workspace: Path, resolver: str) -> None:
    (workspace / "settings").write_text(SECRET)
    (workspace / ".env").symlink_to("settings")
    assert rail(resolver=resolver).read(".env").error.details["rule"] == "fs.secret"


def test_what_counts_is_the_name_of_what_was_opened(workspace: Path, resolver: str) -> None:
    """Even when policy was not asked: whoever opens a file gets no credential."""
    (workspace / ".ssh").mkdir()
    (workspace / ".ssh" / "config").write_text(SECRET)
    (workspace / "link").symlink_to(".ssh")
    with Workspace(str(workspace), kernel=resolver == "kernel") as one:
        for attempt in (lambda: one.open_file("link/config"), lambda: one.open_folder("link")):
            with pytest.raises(ToolError) as caught:
                attempt()
            assert caught.value.code == "POLICY_DENIED"
        assert one.hash_of("link/config") is None


def test_a_deep_listing_does_not_enter_credential_folders(rail: Rail, workspace: Path, resolver: str) -> None:
    (workspace / "home" / ".ssh").mkdir(parents=True)
    (workspace / "home" / ".ssh" / "id_of_the_bank").write_text(SECRET)
    result = rail(resolver=resolver).ls(".", depth=5)
    assert "home/.ssh/  (protected)" in result.content
    assert "id_of_the_bank" not in result.content


PROTECTED = [
    ".git/hooks/pre-commit",
    ".Git/Hooks/pre-commit",
    ".GIT/config",
    ".git/commondir",
    ".git",
    "sub/.git/config",
    ".git/modules/x/config",
    ".github/workflows/ci.yml",
    ".vscode/settings.json",
    "handrail.toml",
    "HANDRAIL.TOML",
    ".mcp.json",
    ".gitattributes",
    "Jenkinsfile",
]


@pytest.mark.parametrize("path", PROTECTED)
def test_what_steers_tools_asks_before_a_change_and_is_read_freely(
    rail: Rail, workspace: Path, resolver: str, path: str
) -> None:
    one = rail(resolver=resolver)
    result = one.write(path, "x = 1\n")
    assert result.error.code == "PERMISSION_REQUIRED"
    assert not list(workspace.iterdir())
    done = one.answer(one.waiting()[0].id, "once")
    assert done.results[0].ok
    assert one.read(path).content == "x = 1\n"


@pytest.mark.parametrize("path", [".gitignore", ".git/HEAD", "github/workflows/ci.yml", "docs/handrail.toml.md"])
def test_what_steers_nothing_does_not_ask(rail: Rail, resolver: str, path: str) -> None:
    assert rail(resolver=resolver).write(path, "x\n").ok


@pytest.mark.parametrize("mode", ["ask", "auto", "full"])
def test_a_protected_file_is_written_under_its_own_name_only(
    rail: Rail, workspace: Path, resolver: str, mode: str
) -> None:
    """A link can be turned between the question and the write: what was asked about would not be what is written."""
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / "notes").symlink_to(".git/hooks/pre-commit")
    (workspace / "folder").symlink_to(".git")
    one = rail(resolver=resolver, mode=mode)
    for path in ("notes", "folder/hooks/pre-commit"):
        refused = one.write(path, "x")
        assert refused.error.code == "POLICY_DENIED"
        assert ".git/hooks/pre-commit" in refused.error.message
    assert not os.listdir(workspace / ".git" / "hooks")


def test_the_name_that_was_asked_for_counts_too(rail: Rail, workspace: Path, resolver: str) -> None:
    """`.git` may be a link now and a folder when the file is written."""
    (workspace / "elsewhere").mkdir()
    (workspace / ".git").symlink_to("elsewhere")
    assert rail(resolver=resolver).write(".git/config", "x").error.code == "PERMISSION_REQUIRED"
