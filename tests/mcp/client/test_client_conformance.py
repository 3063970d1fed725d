"""The conformance suite's scenarios for clients, each against a whole session of ours.

Those that are not here do not apply: `auth/*` (OAuth is not spoken), `elicitation-*` and `sep-2322-*` (a server is not
let ask a person), `sep-2640-*` (an extension about skills that servers bring).
"""

import subprocess
import sys
from pathlib import Path

import oracles
import pytest

CLIENT = Path(__file__).parent / "conformance_client.py"
PUBLISHED = ("initialize", "tools_call", "sse-retry")
NEXT = (
    ("tools_call", "2026-07-28"),
    ("request-metadata", "2026-07-28"),
    ("http-standard-headers", "2026-07-28"),
    ("http-custom-headers", "2026-07-28"),
    ("http-invalid-tool-headers", "2026-07-28"),
    ("json-schema-ref-no-deref", "2026-07-28"),
    ("json-schema-2020-12-preservation", "2025-11-25"),
)


def passes(suite: list[str], scenario: str, tmp_path: Path, *more: str) -> None:
    words = [*suite, "client", "--command", f"{sys.executable} {CLIENT}", "--scenario", scenario, *more]
    environ = {**oracles.environment(), "NODE_NO_WARNINGS": "1"}
    done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=300)
    told = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, told
    assert "OVERALL: PASSED" in told, told
    assert "Passed: 0/0" not in told, "nothing was looked at"


EVERY_DAY = frozenset({"tools_call", "sse-retry", "http-custom-headers"})
"""Each takes a second or two of starting; the others are for a deep run."""


@pytest.mark.parametrize("scenario", PUBLISHED)
def test_a_scenario_of_the_published_suite_passes(
    packages: oracles.Packages, tmp_path: Path, scenario: str, deep: bool
) -> None:
    if scenario not in EVERY_DAY and not deep:
        pytest.skip("in a deep run")
    passes(packages.conformance, scenario, tmp_path)


@pytest.mark.parametrize(("scenario", "version"), NEXT)
def test_a_scenario_of_the_coming_suite_passes(
    packages: oracles.Packages, tmp_path: Path, scenario: str, version: str, deep: bool
) -> None:
    if scenario not in EVERY_DAY and not deep:
        pytest.skip("in a deep run")
    passes(packages.conformance_next, scenario, tmp_path, "--spec-version", version)
