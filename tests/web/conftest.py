"""What the tests in a real browser share: the built console, Chromium, a server with scripted models."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.web.console import Console, open_console

import oracles

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_ARGUMENTS = ["--no-sandbox"] if os.getuid() == 0 else []


@pytest.fixture(scope="session")
def built() -> Path:
    """The folder of the built console."""
    if _CHROMIUM is None:
        pytest.skip("needs Chromium (Debian: apt-get install chromium)")
    try:
        return oracles.built_console()
    except oracles.NotReachableError as unreachable:
        pytest.skip(f"the npm registry cannot be reached: {unreachable}")


@pytest.fixture(scope="module")
def browser(built: Path) -> Iterator[Browser]:
    """Only for a module: while Playwright runs, no other test could start an event loop."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=_CHROMIUM, args=_ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def console(
    request: pytest.FixtureRequest, built: Path, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Console]:
    """The server of a module with its `SCRIPTS`."""
    folder = tmp_path_factory.mktemp("console")
    settings = getattr(request.module, "SETTINGS", "")
    with open_console(folder, built, browser, request.module.SCRIPTS, settings) as opened:
        yield opened
        assert opened.problems == []
