"""What the tests of the MCP faces share."""

import pytest

import oracles


@pytest.fixture(scope="session")
def packages() -> oracles.Packages:
    """Programs of others, from npm. Without a registry there are none, and the test says so."""
    try:
        return oracles.installed()
    except oracles.NotReachableError as unreachable:
        pytest.skip(f"the npm registry cannot be reached: {unreachable}")
