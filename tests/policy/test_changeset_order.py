"""The order in which people see changes."""

import pytest
from tests.policy.deciding import change

from handrail.policy.changeset import is_deletion, is_generated, sort_by_harm

IN_ORDER = (
    change("gone.py", "deleted"),
    change("was-a-file", kind="folder", replaces="file"),
    change(".github/x.yml", "deleted"),
    change(".git/hooks/pre-commit", "created", executable=True),
    change("x.yml", "renamed", renamed_from=".gitlab-ci.yml"),
    change("run.sh", "mode", executable=True),
    change("node_modules/x/tool", "created", mode=0o4755),
    change("out", "created", kind="link", outside=True),
    change("kept.py", read_only=True),
    change("a.py"),
    change("b.py", "renamed", renamed_from="c.py"),
    change("c.py", "deleted"),
    change("file", kind="file", replaces="folder"),
    change("new.py", "created"),
    change("d.py", layout_only=True),
    change("node_modules/x/index.js", "deleted"),
    change("uv.lock"),
    change(f".git/objects/ab/{'0' * 38}", "created"),
    change(".git/index"),
)


@pytest.mark.parametrize("turned", [False, True])
def test_harm_comes_first_and_what_programs_make_last(turned: bool) -> None:
    ranks = [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 4, 5, 6, 7, 7, 7, 7]
    rank_of = {one.path: rank for one, rank in zip(IN_ORDER, ranks, strict=True)}
    shown = sort_by_harm(IN_ORDER[::-1] if turned else IN_ORDER)
    assert [rank_of[one.path] for one in shown] == ranks
    assert turned or shown == IN_ORDER


def test_what_only_moved_is_not_deleted() -> None:
    assert not is_deletion(change("a", "deleted"), frozenset({"a"}))
    assert is_deletion(change("a", "deleted"), frozenset({"b"}))
    assert is_deletion(change("a", kind="folder", replaces="link"))
    assert not is_deletion(change("a", replaces="folder")), "what was in it is listed by itself"


@pytest.mark.parametrize("path", ["a/__pycache__/x.pyc", "x.min.js", "node_modules", "A/Node_Modules/x", ".git/HEAD"])
def test_generated(path: str) -> None:
    assert is_generated(path)


@pytest.mark.parametrize("path", ["dist/a.js", "build/x", "vendor/x.go", "src/lock.py", "a.js"])
def test_not_generated(path: str) -> None:
    assert not is_generated(path)
