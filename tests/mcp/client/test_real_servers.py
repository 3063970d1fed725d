"""Servers of others, as people have them: the file server from npm, and one on the official SDK."""

import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from serving import Place, code_of, comes_true, plain, table

import oracles


def reaches(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def over_http(place: Place) -> Generator[int]:
    """The SDK's server at a port, outside of any sandbox."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, str(place.workspace / "on_the_sdk.py"), str(port)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as server:
        try:
            assert comes_true(lambda: reaches(port))
            yield port
        finally:
            server.kill()


def test_the_file_server_from_npm_reads_in_the_sandbox_and_writes_where_it_may(
    place: Place, packages: oracles.Packages
) -> None:
    (place.workspace / "a.txt").write_text("one\ntwo\n")
    toolchains = f'[sandbox]\ntoolchains = ["{oracles.NODE.parent.parent}", "{packages.modules}"]\n'
    words = [*packages.filesystem, str(place.workspace)]
    path, more = str(place.workspace / "a.txt"), "writable = true"
    given = {"path": str(place.workspace / "b.txt"), "content": "three"}
    place.head = toolchains
    with place.session(table("files", *words) + table("writer", *words, more=more)) as rail:
        names = [spec.name for spec in rail.specs()]
        read = rail.call("mcp__files__read_text_file", {"path": path})
        refused = rail.call("mcp__files__write_file", given)
        written = rail.call("mcp__writer__write_file", given)
        wrong = rail.call("mcp__files__read_text_file", {"file": path})
    assert {"mcp__files__read_text_file", "mcp__files__write_file"} <= set(names)
    assert read.content == "one\ntwo\n"
    assert read.data == {"content": "one\ntwo\n"}
    assert code_of(refused) == "IO_ERROR"
    assert "read-only file system" in refused.content
    assert code_of(written) is None
    assert (place.workspace / "b.txt").read_text() == "three"
    assert code_of(wrong) == "INVALID_ARGUMENT"


def test_a_server_on_the_sdk_is_spoken_to_in_the_newest_version_and_its_news_are_heard(place: Place) -> None:
    found = place.found(table("sdk", sys.executable, "on_the_sdk.py"))
    with place.opened(found) as rail:
        assert rail.call("mcp__sdk__add", {"one": 2, "other": 3}).data == {"result": 5}
        version = found.sources[0]._supervisor._client.protocol_version  # pyright: ignore
        assert rail.call("mcp__sdk__announce", {"name": "fresh"}).content == "there is fresh now"
        assert comes_true(lambda: "mcp__sdk__fresh" in [spec.name for spec in rail.specs()])
    assert version == "2026-07-28"


def test_a_server_over_http_is_called_like_any_other(place: Place) -> None:
    with (
        over_http(place) as port,
        place.session(f'[mcp.servers.web]\nurl = "http://127.0.0.1:{port}/mcp"\n') as rail,
    ):
        added = rail.call("mcp__web__add", {"one": 2, "other": 3})
        announced = rail.call("mcp__web__announce", {"name": "fresh"})
        assert comes_true(lambda: "mcp__web__fresh" in [spec.name for spec in rail.specs()])
    assert added.data == {"result": 5}
    assert announced.content == "there is fresh now"


def test_a_server_over_http_that_goes_away_fails_its_calls_with_words(place: Place) -> None:
    with ExitStack() as opened:
        with over_http(place) as port:
            text = f'[mcp.servers.web]\nurl = "http://127.0.0.1:{port}/mcp"\ntimeout = "5s"\n'
            rail = opened.enter_context(place.session(text))
            assert rail.call("mcp__web__add", {"one": 2, "other": 3}).data == {"result": 5}
        result = rail.call("mcp__web__add", {"one": 2, "other": 3})
    assert code_of(result) in {"UNAVAILABLE", "IO_ERROR", "TIMEOUT"}
    assert "web" in result.content


def test_the_library_has_servers_as_it_is_written(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "use-other-mcp-servers.md").read_text()
    place.loaded(plain("files"))
    monkeypatch.chdir(place.workspace)
    monkeypatch.setattr(os, "environ", place.environ)
    exec(page.partition("```python\n")[2].partition("```")[0], {})
    expected = "mcp__files__echo mcp__files__write mcp__files__variable mcp__files__reach\n"
    assert capsys.readouterr().out == expected
