"""What commands learn of the person's git settings."""

import shutil
import subprocess
from pathlib import Path

import pytest

from handrail.sandbox.profile import SandboxHost
from handrail.sandbox.view import build_git_identity

SETTINGS = [
    ("[user]\n\tname = Ada\n\temail = ada@example.org\n", "ada@example.org", "Ada"),
    ('[USER] name = "Ada Lovelace"\nEmail=a@b ; at home\n', "a@b", "Ada Lovelace"),
    ("[user]\nname = A\n[core]\nname = B\n[user]\nname = C\nemail = c@d\n", "c@d", "C"),
    ('[user]\nname = "Ann # Lee; Jr" # at work\nemail = a@b\n', "a@b", "Ann # Lee; Jr"),
    ('[user]\nname = Ann \\"Al\\" Lee\nemail = a@b\n', "a@b", 'Ann \\"Al\\" Lee'),
]


def told(tmp_path: Path, settings: str) -> str:
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / ".gitconfig").write_text(settings)
    host = SandboxHost(home=str(tmp_path / "home"), environ={}, state=str(tmp_path / "state"))
    return "".join(Path(mount.target).read_text() for mount in build_git_identity(host, host.home))


@pytest.mark.parametrize(("settings", "email", "name"), SETTINGS)
def test_name_and_address_are_told(tmp_path: Path, settings: str, email: str, name: str) -> None:
    assert told(tmp_path, settings) == f'[user]\n\temail = "{email}"\n\tname = "{name}"\n'


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("written", ['"Ann # Lee"', r"Ann \"Al\" Lee", r'"a\\b" ; c', '" x "y'])
def test_git_reads_the_same_name_from_it(tmp_path: Path, written: str) -> None:
    (tmp_path / "own").write_text(f"[user]\nname = {written}\n")
    (tmp_path / "told").write_text(told(tmp_path, f"[user]\nname = {written}\n"))
    names = [
        subprocess.run(
            ["git", "config", "-f", tmp_path / file, "user.name"], capture_output=True, text=True, check=True
        )
        for file in ("own", "told")
    ]
    assert names[0].stdout.strip() == names[1].stdout.strip()


def test_nothing_else_is_told(tmp_path: Path) -> None:
    settings = (
        '[user]\nname = Ada\nsigningkey = canary\n[credential]\nhelper = canary\n[url "https://canary@x"]\nname = y\n'
    )
    assert told(tmp_path, settings) == '[user]\n\tname = "Ada"\n'


@pytest.mark.parametrize("settings", ["", "[core]\nname = x\n", '[user "other"]\nname = x\n', "[user]\nname = a\\nb\n"])
def test_who_tells_no_name_has_none(tmp_path: Path, settings: str) -> None:
    assert told(tmp_path, settings) == ""


def test_a_name_that_changes_is_told_anew(tmp_path: Path) -> None:
    assert "Ada" in told(tmp_path, "[user]\nname = Ada\n")
    assert "Bob" in told(tmp_path, "[user]\nname = Bob\n")
