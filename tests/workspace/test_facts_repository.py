"""Repositories that are not called .git: what steers them is known by what their folder holds."""

import subprocess
from pathlib import Path

import pytest

from handrail.protocol.decisions import Access
from handrail.workspace.facts import build_command_fact, build_path_fact
from handrail.workspace.workspace import Workspace


@pytest.fixture
def house(tmp_path: Path) -> Workspace:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "store")], check=True)
    (tmp_path / "src" / "hooks").mkdir(parents=True)
    return Workspace(str(tmp_path))


@pytest.mark.parametrize(
    ("path", "access", "steers"),
    [
        ("store/config", "write", True),
        ("store/hooks/update", "write", True),
        ("store/hooks/update.sample", "delete", True),
        ("store/info/attributes", "write", True),
        ("./store/config", "write", True),
        ("store/config", "read", False),
        ("store/HEAD", "write", False),
        ("store/refs/heads/main", "write", False),
        ("src/hooks/use.py", "write", False),
        ("src/config", "write", False),
        ("src/HEAD", "write", False),
        ("src/main.py", "write", False),
        ("new/config", "write", False),
    ],
)
def test_what_steers_a_bare_repository(house: Workspace, path: str, access: Access, steers: bool) -> None:
    assert build_path_fact(house, path, access).repository is steers
    assert build_command_fact(house, path, access).repository is steers


@pytest.mark.parametrize(
    ("there", "last"),
    [
        (("objects/x", "refs/x", "config"), "HEAD"),
        (("HEAD", "objects/x"), "refs/heads/main"),
        (("HEAD", "refs/x"), "objects/info/packs"),
        (("HEAD",), "commondir"),
        (("commondir",), "HEAD"),
    ],
)
def test_the_write_that_makes_a_folder_a_repository(
    house: Workspace, tmp_path: Path, there: tuple[str, ...], last: str
) -> None:
    for name in there:
        (tmp_path / "made" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "made" / name).write_text("x")
    assert build_path_fact(house, f"made/{last}", "write").repository
    assert not build_path_fact(house, f"made/{there[0]}", "delete").repository


def test_the_workspace_may_be_a_bare_repository_itself(house: Workspace, tmp_path: Path) -> None:
    with Workspace(str(tmp_path / "store")) as inside:
        assert build_path_fact(inside, "config", "write").repository
        assert build_path_fact(inside, "hooks/update", "write").repository
        assert not build_path_fact(inside, "readme.md", "write").repository
    house.close()
