"""policy explain says of a command what a session would do with it: whether it gets a layer is part of that."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.sandbox.bubblewrap import find_bubblewrap

pytestmark = pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed")


@pytest.mark.parametrize(
    "args",
    [
        {"command": "touch made"},
        {"command": "ls"},
        {"command": "touch made", "background": True},
        {"command": "bash -c 'rm -r src'"},
    ],
    ids=["may write", "only looks", "in the background", "may delete"],
)
def test_what_is_explained_is_what_happens(
    here, rail: Callable[..., Handrail], workspace: Path, args: dict[str, object]
) -> None:
    (workspace / "src").mkdir()
    asked = ("--tool", "exec", "--args", json.dumps(args))
    explained = here("policy", "explain", "--json", "--mode", "auto", *asked).json
    result = rail(mode="auto").call("exec", args)
    happened = "confirm" if result.error and result.error.code == "PERMISSION_REQUIRED" else "allow"
    assert explained["decision"] == happened
    assert explained["tier"] == (2 if args.get("background") else 3)
