"""The files of the console, from a folder as a build makes it."""

import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from handrail.server.console_files import PAGES, ConsoleFiles

_WEB = Path(__file__).parents[2] / "web"


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<title>console</title>")
    (tmp_path / "assets" / "a-1.js").write_text("1")
    return TestClient(Starlette(routes=[Mount("/", ConsoleFiles(str(tmp_path)))]))


@pytest.mark.parametrize("path", ["/", "/tasks", "/tasks/s_1/calls/call.7", "/changes/12"])
def test_an_address_of_the_console_gets_its_page(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert "console" in answer.text
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/api/x", "/mcp", "/ws/x", "/other", "/assets", "/assets/none.js", "//etc/passwd"])
def test_other_addresses_are_not_found(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_files_with_a_hash_in_their_name_are_kept(client: TestClient) -> None:
    answer = client.get("/assets/a-1.js")
    assert answer.text == "1"
    assert "immutable" in answer.headers["cache-control"]


def test_the_server_knows_the_pages_of_the_console() -> None:
    listed = re.findall(r'^  \{ name: "(\w+)"', (_WEB / "src/pages/index.ts").read_text(encoding="utf-8"), re.M)
    assert set(listed) == PAGES
