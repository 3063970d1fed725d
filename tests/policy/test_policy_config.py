"""A grant covers exactly one class of commands."""

from handrail.policy.config import Grant, find_grant

COMMIT = Grant(id="g1", command="git commit")
STAR = Grant(id="g2", command="git *", scope="workspace")


def test_a_grant_is_found_by_its_whole_class() -> None:
    assert find_grant((STAR, COMMIT), "git commit") is COMMIT


def test_nothing_else_is_granted() -> None:
    for other in ("git", "git commit --amend", "git commi", "GIT COMMIT", "git push"):
        assert find_grant((STAR, COMMIT), other) is None


def test_a_part_without_a_class_is_never_granted() -> None:
    assert find_grant((Grant(id="g", command=""),), "") is None
