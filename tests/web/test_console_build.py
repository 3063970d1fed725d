"""The console is built into the wheel, and nowhere else needs Node.js."""

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.web.console import DEEP

import oracles

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "web" / "scripts" / "build"


def _initialize(version: str) -> dict[str, Any]:
    """What the hook adds to a build of this version."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    data: dict[str, Any] = {"artifacts": []}
    module.ConsoleBuildHook(str(ROOT), {}, None, None, "", "wheel").initialize(version, data)
    return data


def test_an_editable_installation_needs_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert _initialize("editable") == {"artifacts": []}


def test_a_wheel_can_be_built_without_the_console(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("HANDRAIL_WITHOUT_CONSOLE", "1")
    assert _initialize("standard") == {"artifacts": []}


def test_without_node_the_build_fails_with_the_next_step(tmp_path: Path) -> None:
    words = [sys.executable, "-I", "-S", str(BUILD), "--into", str(tmp_path / "console")]
    done = subprocess.run(words, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "there is no Node.js 20.19 or newer" in done.stderr
    assert "apt-get install nodejs npm" in done.stderr
    assert "HANDRAIL_WITHOUT_CONSOLE=1" in done.stderr
    assert not (tmp_path / "console").exists()


def test_a_current_build_is_not_made_again(tmp_path: Path) -> None:
    source = subprocess.run([sys.executable, str(BUILD), "--source"], capture_output=True, text=True, check=True).stdout
    (tmp_path / "source.sha256").write_text(source.strip())
    words = [sys.executable, "-I", "-S", str(BUILD), "--into", str(tmp_path)]
    subprocess.run(words, env={"PATH": ""}, check=True)


@pytest.mark.skipif(not DEEP, reason="builds a wheel")
def test_the_wheel_contains_the_console(tmp_path: Path) -> None:
    try:
        oracles.built_console()
    except oracles.NotReachableError as unreachable:
        pytest.skip(f"the npm registry cannot be reached: {unreachable}")
    words = [sys.executable, "-P", "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(words, env=os.environ, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "handrail/server/console/index.html" in names
    assert any(name.startswith("handrail/server/console/assets/") for name in names)
    assert "handrail/server/console/licenses.md" in names
    assert not any("node_modules" in name for name in names)
