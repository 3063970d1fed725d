"""The console at a node of a fleet."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.fleet.fleets import Fleet
from tests.server.serve_process import ServeProcess
from tests.web.console import DEEP, Console, answer, drawer, expect_end

pytestmark = pytest.mark.skipif(not DEEP, reason="everyday, tests/fleet/test_fleet_nodes.py is enough")


class NodeConsole(Console):
    """A node, whose tasks run on a worker."""

    def __init__(self, folder: Path, built: Path, browser: Browser, url: str) -> None:
        self._url = url
        super().__init__(folder, built, browser, {})

    def start(self, port: int = 0) -> ServeProcess:
        options = ("--database", self._url, "--model", "append:2")
        return ServeProcess(self._folder, *options, port=port, program=self._program)


@pytest.fixture
def console(tmp_path: Path, built: Path, browser: Browser) -> Iterator[NodeConsole]:
    for name in ("fleet", "node"):
        (tmp_path / name).mkdir()
    with Fleet(tmp_path / "fleet") as fleet:
        fleet.start_worker()
        console = NodeConsole(tmp_path / "node", built, browser, fleet.url)
        try:
            yield console
        finally:
            console.close()
    assert console.problems == []


def test_a_task_of_a_worker_is_watched_and_approved(console: NodeConsole) -> None:
    task = console.post("/api/tasks", {"prompt": "Go on.", "mode": "ask"})["id"]
    page = console.window(f"/tasks/{task}")
    for _ in range(2):
        expect(drawer(page)).to_contain_text("log.txt")
        answer(page, "^(Keep|Approve)")
        expect(page.locator(".drawer")).to_have_count(0)
    expect_end(page)
    log = console.workspace / "log.txt"
    assert log.read_text() == "line-0\nline-1\n"
    page.reload()
    expect_end(page)
    for path in ("/inbox", "/changes", "/audit", "/processes", "/policy", "/tools", "/settings"):
        other = console.window(path)
        expect(other.get_by_role("heading", level=1)).to_be_visible()
        other.context.close()
