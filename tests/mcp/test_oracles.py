"""The programs of others that judge us: pinned, and installed whole or not at all."""

import json
import subprocess
from pathlib import Path

import pytest

import oracles

every_lock = pytest.mark.parametrize(
    "declared",
    [Path(__file__).parent / "node", oracles.HOSTS, oracles.LANGUAGE_SERVERS],
    ids=lambda one: f"{one.parent.name}-{one.name}",
)


@every_lock
def test_every_package_is_pinned_to_one_version_and_one_content(declared: Path):
    wanted = json.loads((declared / "package.json").read_text())["dependencies"]
    assert all(version.rpartition("@")[2][0].isdigit() for version in wanted.values())
    locked = json.loads((declared / "package-lock.json").read_text())["packages"]
    assert all(one["integrity"].startswith("sha512-") for name, one in locked.items() if name)


@every_lock
def test_no_file_says_where_packages_come_from(declared: Path):
    locked = json.loads((declared / "package-lock.json").read_text())["packages"]
    assert not [name for name, one in locked.items() if "resolved" in one]
    for text in (one.read_text() for one in declared.iterdir()):
        assert not any(word.strip('",').endswith(".tgz") for word in text.split() if "://" in word)


def test_the_suite_runs_on_the_node_of_the_wheel(packages: oracles.Packages):
    words = [*packages.conformance_next, "--version"]
    done = subprocess.run(words, env=oracles.environment(), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0.2.0-alpha.12"
