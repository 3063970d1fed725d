"""Rules about reading, and paths that the standing grants never cover."""

from typing import Literal

import pytest

from handrail.policy.changeset import are_tool_caches
from handrail.policy.config import PolicyConfig, Rule
from handrail.policy.granted_changes import may_be_edits
from handrail.policy.verdict import PartVerdict, judge_by_mode
from handrail.protocol.changes import Change
from handrail.protocol.decisions import Facts, PathFact


@pytest.mark.parametrize(
    ("tool", "verdict", "restricts"),
    [("*", "deny", True), ("read", "confirm", True), ("*", "allow", False), ("write", "deny", False)],
)
def test_rules_that_keep_files_from_being_read_are_found(
    tool: str, verdict: Literal["allow", "confirm", "deny"], restricts: bool
) -> None:
    rule = Rule(id="r", verdict=verdict, pattern="private/**", tool=tool)
    assert PolicyConfig("ask", rules=(rule,)).restricts_reads is restricts


@pytest.mark.parametrize(
    ("path", "is_edit"),
    [
        ("a.py", True),
        ("src/git/a", True),
        (".git/HEAD", False),
        ("sub/.GIT/refs/heads/main", False),
        ("/data/a", False),
    ],
)
def test_a_write_in_a_repository_is_no_plain_edit(path: str, is_edit: bool) -> None:
    fact = PathFact(path=path, access="write", kind="file", real=path)
    asks: PartVerdict = judge_by_mode(path, "fs.write", "write", "ask", undo=True)
    assert may_be_edits(Facts(paths=(fact,)), [asks]) is is_edit


@pytest.mark.parametrize(
    ("path", "is_cache"),
    [
        (".pytest_cache/v/cache/nodeids", True),
        ("api/.ruff_cache/0.1/x", True),
        ("node_modules/.cache/prettier/a", True),
        ("node_modules/.cache/.eslintcache", True),
        ("node_modules/.cache/babel-loader/a.json", False),
        ("node_modules/.cache/a.js", False),
        ("/data/.pytest_cache/a", False),
        ("src/a.py", False),
    ],
)
def test_only_caches_that_nothing_runs_are_tool_caches(path: str, is_cache: bool) -> None:
    assert are_tool_caches((Change(path=path, action="created", mode=0o644),)) is is_cache
