"""The conformance suite's scenarios for clients, each against a whole session of ours."""

import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from conformance_scope import CLIENT_APPLIES, CLIENT_NOT_OURS

import oracles

CLIENT = Path(__file__).parent / "conformance_client.py"
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "mcp-conformance.md"
RUNS = (
    ("published", "initialize", "2025-06-18"),
    ("published", "initialize", "2025-11-25"),
    ("published", "tools_call", "2025-06-18"),
    ("published", "tools_call", "2025-11-25"),
    ("published", "sse-retry", "2025-11-25"),
    ("next", "initialize", "2025-06-18"),
    ("next", "initialize", "2025-11-25"),
    ("next", "tools_call", "2025-06-18"),
    ("next", "tools_call", "2025-11-25"),
    ("next", "tools_call", "2026-07-28"),
    ("next", "sse-retry", "2025-11-25"),
    ("next", "request-metadata", "2026-07-28"),
    ("next", "http-standard-headers", "2026-07-28"),
    ("next", "http-custom-headers", "2026-07-28"),
    ("next", "http-invalid-tool-headers", "2026-07-28"),
    ("next", "json-schema-ref-no-deref", "2026-07-28"),
    ("next", "json-schema-2020-12-preservation", "2025-11-25"),
    ("next", "json-schema-2020-12-preservation", "2026-07-28"),
)
EVERY_DAY = (
    ("published", "tools_call", "2025-11-25"),
    ("published", "sse-retry", "2025-11-25"),
    ("next", "http-custom-headers", "2026-07-28"),
)
"""Each takes a second or two of starting; the others are for a deep run."""
_LISTED = re.compile(r"^\s+- (\S+) \[(\S+)\]", re.MULTILINE)


def _suite(packages: oracles.Packages, which: str) -> list[str]:
    return packages.conformance_next if which == "next" else packages.conformance


@pytest.mark.parametrize("which", ["next", "published"])
def test_every_scenario_for_clients_is_run_in_every_version_or_does_not_apply_for_a_reason(
    packages: oracles.Packages, which: str
) -> None:
    words = [*_suite(packages, which), "list", "--client"]
    done = subprocess.run(words, env=oracles.environment(), capture_output=True, text=True, check=True)
    listed = {name: versions.split(",") for name, versions in _LISTED.findall(done.stdout)}
    ours = {name for name in listed if not any(fnmatchcase(name, other) for other in CLIENT_NOT_OURS)}
    assert ours <= CLIENT_APPLIES
    assert which == "published" or ours == CLIENT_APPLIES
    assert {run for run in RUNS if run[0] == which} == {(which, name, one) for name in ours for one in listed[name]}


@pytest.mark.parametrize(("which", "scenario", "version"), RUNS)
def test_a_scenario_for_clients_passes(
    packages: oracles.Packages, tmp_path: Path, which: str, scenario: str, version: str, deep: bool
) -> None:
    if (which, scenario, version) not in EVERY_DAY and not deep:
        pytest.skip("in a deep run")
    words = [*_suite(packages, which), "client", "--command", f"{sys.executable} {CLIENT}", "--scenario", scenario]
    environ = {**oracles.environment(), "NODE_NO_WARNINGS": "1"}
    done = subprocess.run(
        [*words, "--spec-version", version],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    told = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, told
    assert "OVERALL: PASSED" in told, told
    assert "Passed: 0/0" not in told, "nothing was looked at"


def test_the_page_about_it_has_every_scenario_for_clients() -> None:
    text = " ".join(PAGE.read_text().partition("## Clients")[2].split())
    for name in CLIENT_APPLIES:
        assert f"`{name}`" in text
    for name, why in CLIENT_NOT_OURS.items():
        assert f"`{name}`" in text.partition(f"| {why} |")[2].partition(" |")[0], name
