"""Skills in the places where people keep them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Tools
from handrail.skills.discovery import SkillCatalog, add_files, find_skills, list_skill_folders
from handrail.workspace.workspace import Workspace

SAMPLES = Path(__file__).parent / "samples"
COMPANIONS = Tools(enable=("skill_list", "skill_control"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with nothing in it."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for variable in ("XDG_CONFIG_HOME", "HANDRAIL_CONFIG"):
        monkeypatch.delenv(variable, raising=False)
    return folder


@pytest.fixture
def put() -> Callable[..., Path]:
    """Puts a sample, or a SKILL.md of its own, into a place."""

    def put(place: Path, name: str, text: str | bytes | None = None) -> Path:
        folder = place / name
        if text is None:
            shutil.copytree(SAMPLES / name, folder)
        else:
            folder.mkdir(parents=True)
            (folder / "SKILL.md").write_bytes(text if isinstance(text, bytes) else text.encode())
        return folder

    return put


@pytest.fixture
def find(workspace: Path, home: Path) -> Callable[..., SkillCatalog]:
    """The skills that are found now."""

    def find(**skills: Any) -> SkillCatalog:
        settings = Settings.from_values({f"skills.{key}": value for key, value in skills.items()})
        with Workspace(str(workspace)) as house:
            places = list_skill_folders(settings, {"HOME": str(home)})
            found = find_skills(house, places, disabled=settings.skills.disable, known=("read", "write", "exec"))
            return SkillCatalog(tuple(add_files(house, skill) for skill in found.skills), found.warnings)

    return find


@pytest.fixture
def skilled(rail: Callable[..., Handrail], home: Path) -> Callable[..., Handrail]:
    """Opens a session that offers the tools for skills."""

    def make(**options: Any) -> Handrail:
        return rail(**{"settings": Settings(mode="full", tools=COMPANIONS), "mode": None, "session": "s", **options})

    return make
