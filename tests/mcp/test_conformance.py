"""The protocol's own conformance suite, against both of our servers."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conformance_scope import APPLIES, BUT, NOT_OURS, OVER_HTTP_ONLY
from http_process import TOKEN, environment
from stdio_bridge import StdioBridge
from token_proxy import TokenProxy

import oracles

_SERVER = str(Path(__file__).parent / "suite_server.py")
_PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "mcp-conformance.md"
_LISTED = re.compile(r"^\s+- (\S+)", re.MULTILINE)
_EVERY_DAY = {("next", "2026-07-28"), ("published", "2025-11-25")}
"""Over HTTP; over stdio it is the newer suite in both of these versions. The others are in a deep run."""
_RUNS = [("next", "2025-06-18"), ("next", "2025-11-25"), ("next", "2026-07-28"), ("published", "2025-11-25")]


def _suite(packages: oracles.Packages, which: str) -> list[str]:
    return packages.conformance_next if which == "next" else packages.conformance


def _listed(suite: list[str], *options: str) -> set[str]:
    return _told((*suite, "list", "--server", *options))


@cache
def _told(words: tuple[str, ...]) -> set[str]:
    done = subprocess.run(words, env=oracles.environment(), capture_output=True, text=True, check=True)
    return set(_LISTED.findall(done.stdout))


@contextmanager
def _over_http(folder: Path) -> Iterator[int]:
    """Our server over HTTP, behind a proxy that has the token, which the suite cannot be told."""
    words = [sys.executable, _SERVER, "http", str(folder / "workspace")]
    told = {**environment(folder), "HANDRAIL_TOKEN": TOKEN}
    with subprocess.Popen(words, env=told, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            with TokenProxy(int(server.stdout.readline()), TOKEN) as proxy:
                yield proxy.port
        finally:
            server.terminate()
    assert server.returncode == 0


@contextmanager
def _over_stdio(folder: Path) -> Iterator[int]:
    """Our server over stdio, behind a bridge that speaks HTTP."""

    def start() -> "subprocess.Popen[bytes]":
        words = [sys.executable, _SERVER, "stdio", str(folder / "workspace")]
        return subprocess.Popen(words, env=environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    with StdioBridge(start) as bridge:
        yield bridge.port


def _checks(suite: list[str], port: int, version: str, out: Path) -> dict[str, list[dict[str, Any]]]:
    """What the suite found, by scenario."""
    url = f"http://localhost:{port}/mcp"
    words = [*suite, "server", "--url", url, "--suite", "all", "--spec-version", version, "-o", str(out)]
    subprocess.run(words, env=oracles.environment(), capture_output=True, timeout=150, check=False)
    return {
        re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\d-]+Z$", "", found.parent.name): json.loads(found.read_text())
        for found in out.glob("*/checks.json")
    }


def _problems(checks: dict[str, list[dict[str, Any]]]) -> set[tuple[str, str, str]]:
    """What did not succeed of what has to."""
    return {
        (scenario, one["id"], one.get("errorMessage") or one["status"])
        for scenario in checks.keys() & APPLIES
        for one in checks[scenario]
        if one["status"] not in {"SUCCESS", "INFO"} and one["id"] not in BUT
    }


@pytest.mark.parametrize("which", ["next", "published"])
def test_every_scenario_of_the_suite_applies_or_does_not_for_a_reason(packages: oracles.Packages, which: str) -> None:
    listed = _listed(_suite(packages, which))
    assert listed <= APPLIES | NOT_OURS.keys()
    assert which == "published" or listed == APPLIES | NOT_OURS.keys()
    assert not APPLIES & NOT_OURS.keys()


@pytest.mark.parametrize(("which", "version"), _RUNS)
def test_the_server_over_http_passes_every_scenario_that_applies(
    tmp_path: Path, packages: oracles.Packages, which: str, version: str, deep: bool
) -> None:
    if (which, version) not in _EVERY_DAY and not deep:
        pytest.skip("more of the same as 2025-11-25; it is in the deep run")
    (tmp_path / "workspace").mkdir()
    suite = _suite(packages, which)
    with _over_http(tmp_path) as port:
        checks = _checks(suite, port, version, tmp_path / "out")
    assert checks.keys() == _listed(suite, "--spec-version", version)
    assert _problems(checks) == set()


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_the_server_over_stdio_says_the_same(
    tmp_path: Path, packages: oracles.Packages, version: str, deep: bool
) -> None:
    if version != "2026-07-28" and not deep:
        pytest.skip("over HTTP it is run every day; it is in the deep run")
    (tmp_path / "workspace").mkdir()
    with _over_stdio(tmp_path) as port:
        checks = _checks(packages.conformance_next, port, version, tmp_path / "out")
    assert checks.keys() == _listed(packages.conformance_next, "--spec-version", version)
    assert {one for one in _problems(checks) if not {one[0], one[1]} & OVER_HTTP_ONLY.keys()} == set()


def test_the_page_about_it_has_every_scenario_and_every_reason() -> None:
    text = " ".join(_PAGE.read_text().split())
    for name in APPLIES:
        assert f"`{name}`" in text
    for name, why in {**NOT_OURS, **BUT, **OVER_HTTP_ONLY}.items():
        assert any(f"`{name}`" in part.partition(" |")[0] for part in text.split(f"| {why} |")[1:]), name
