"""Verdicts on change sets."""

import pytest
from tests.policy.deciding import change

from handrail.policy.changeset import judge_changes
from handrail.policy.config import PolicyConfig, Rule
from handrail.protocol.changes import Action, Change
from handrail.protocol.decisions import MODES, Decision, Mode, Verdict


def judged(*changes: Change, mode: Mode = "auto", undo: bool = True, **more: object) -> Decision:
    return judge_changes(changes, PolicyConfig(mode=mode, **more), undo=undo)  # type: ignore[arg-type]


def verdicts(*changes: Change, undo: bool = True) -> dict[Mode, Verdict]:
    return {mode: judged(*changes, mode=mode, undo=undo).decision for mode in MODES}


UNASKED: dict[Mode, Verdict] = {"plan": "deny", "ask": "confirm", "auto": "allow", "full": "allow"}
ASKS: dict[Mode, Verdict] = {"plan": "deny", "ask": "confirm", "auto": "confirm", "full": "allow"}
NEVER: dict[Mode, Verdict] = {"plan": "deny", "ask": "deny", "auto": "deny", "full": "deny"}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (change("src/a.py"), UNASKED),
        (change("src/a.py", "created"), UNASKED),
        (change("src/a.py", "deleted"), UNASKED),
        (change("src", "deleted", "folder"), UNASKED),
        (change("src/b.py", "renamed", renamed_from="src/a.py"), UNASKED),
        (change("run.sh", "created", mode=0o755), UNASKED),
        (change(".git/HEAD"), UNASKED),
        (change(".git/objects/ab/" + "0" * 38, "created"), UNASKED),
        (change(".git/objects/ab", "created", "folder"), UNASKED),
        (change(".git/objects/ab/" + "0" * 38, "deleted"), ASKS),
        (change(".git/objects/info/alternates", "created"), ASKS),
        (change(".git/hooks/pre-commit", "created", mode=0o755), ASKS),
        (change(".git/config"), ASKS),
        (change(".git", "created"), ASKS),
        (change(".github/workflows/ci.yml", "deleted"), ASKS),
        (change("ci.yml", "renamed", renamed_from=".github/workflows/ci.yml"), ASKS),
        (change("tool", "mode", mode=0o4755), ASKS),
        (change("shared", "created", "folder", mode=0o2755), UNASKED),
        (change("a", shared=True), ASKS),
        (change("a", "mode", mode=0o600, shared=True), ASKS),
        (change(".env", "created"), NEVER),
        (change("a/.ssh/config", "deleted"), NEVER),
        (change("notes.txt", "renamed", renamed_from=".env"), NEVER),
    ],
)
def test_by_mode(made: Change, expected: dict[Mode, Verdict]) -> None:
    assert verdicts(made) == expected


@pytest.mark.parametrize("made", [change("a"), change("a", "deleted"), change("a", "created", mode=0o755)])
def test_what_undo_does_not_cover_asks_in_auto(made: Change) -> None:
    assert verdicts(made, undo=False) == ASKS


def test_nothing_changed_is_allowed_everywhere() -> None:
    assert set(verdicts().values()) == {"allow"}
    assert judged().rule == "fs.unchanged"


def test_each_kind_of_harm_is_a_part_the_worst_first() -> None:
    decision = judged(
        change("a.py"),
        change("run.sh", "mode", mode=0o755, executable=True),
        change("old.py", "deleted"),
        change(".git/config"),
        mode="ask",
    )
    assert [part.rule for part in decision.parts] == ["fs.protected", "fs.delete", "fs.executable", "fs.write"]
    assert (decision.rule, decision.subject) == ("fs.protected", ".git/config")
    assert decision.parts[1].reason == "deletes old.py"


def test_credentials_come_first_and_say_no_as_policy_does() -> None:
    decision = judged(change(".git/config"), change(".env"))
    assert (decision.rule, decision.subject, decision.code) == ("fs.secret", ".env", "POLICY_DENIED")


def test_a_part_names_three_paths_and_counts_the_rest() -> None:
    decision = judged(*(change(f"{n}.py") for n in range(5)), mode="ask")
    assert decision.subject == "0.py, 1.py, 2.py and 2 more"
    assert decision.reason == "writes 0.py, 1.py, 2.py and 2 more"


@pytest.mark.parametrize(
    ("action", "count", "expected"), [("deleted", 20, "allow"), ("deleted", 21, "confirm"), ("created", 200, "allow"),
                                      ("created", 201, "confirm")]
)  # fmt: skip
def test_very_many_at_once_ask_in_auto(action: Action, count: int, expected: Verdict) -> None:
    decision = judged(*(change(f"{n}.py", action) for n in range(count)))
    assert decision.decision == expected
    assert (decision.rule == "fs.bulk") == (expected == "confirm")


def test_how_many_are_very_many_is_a_setting() -> None:
    assert judged(change("a", "deleted"), change("b", "deleted"), bulk_deleted=1).rule == "fs.bulk"
    assert judged(change("a"), change("b"), bulk_changed=1).reason == "changes 2 files at once, of which it deletes 0"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ([change("a", "created", size=256 << 20)], UNASKED),
        ([change("a", "created", size=(256 << 20) + 1)], ASKS),
        ([change("a", size=200 << 20), change("b", "created", size=200 << 20)], ASKS),
        ([change(".git/objects/ab/" + "0" * 38, "created", size=300 << 20)], ASKS),
        ([change("b", "renamed", size=300 << 20, renamed_from="a"), change("a", "deleted")], UNASKED),
        ([change("a", "mode", size=300 << 20)], UNASKED),
        ([change("a", "deleted")], UNASKED),
    ],
)
def test_very_many_bytes_at_once_ask(made: list[Change], expected: dict[Mode, Verdict]) -> None:
    assert verdicts(*made) == expected
    assert (judged(*made).rule == "fs.bulk") == (expected == ASKS)


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        (99 << 10, "writes 1.5 MB at once, more than 0.1 MB"),
        (1 << 20, "writes 1.5 MB at once, more than 1.0 MB"),
    ],
)
def test_a_bulk_change_of_bytes_says_how_many_and_the_limit(limit: int, reason: str) -> None:
    found = judged(change("a", "created", size=1_536 << 10), bulk_bytes=limit)
    assert (found.rule, found.subject, found.reason) == ("fs.bulk", "files", reason)
    more = judged(change("a", "created", size=3 << 30))
    assert more.reason == "writes 3,072.0 MB at once, more than 256.0 MB"


def test_folders_and_new_objects_do_not_count() -> None:
    folders = [change(f"f{n}", "deleted", "folder") for n in range(30)]
    objects = [change(f".git/objects/ab/{n:038x}", "created") for n in range(300)]
    assert judged(*folders, *objects).decision == "allow"


def test_stricter_rules_about_paths_hold_for_what_came_of_a_command() -> None:
    ask = Rule(id="docs", verdict="confirm", pattern="docs/**", tool="*")
    deny = Rule(id="data", verdict="deny", pattern="data/**", tool="*", because="measured")
    decision = judged(change("docs/a"), change("docs/b"), mode="full", rules=(ask, deny))
    assert (decision.decision, decision.rule, decision.subject) == ("confirm", "docs", "docs/a, docs/b")
    moved = change("x", "renamed", renamed_from="data/x")
    decision = judged(change("docs/a"), moved, mode="full", rules=(ask, deny))
    assert (decision.decision, decision.rule, decision.reason) == ("deny", "data", "measured")


def test_an_allow_rule_does_not_lift_what_the_changes_are() -> None:
    allow = Rule(id="w", verdict="allow", pattern="**", tool="write")
    decision = judge_changes((change("a"),), PolicyConfig(mode="ask", rules=(allow,)), undo=True, tool="write")
    assert (decision.decision, decision.rule) == ("confirm", "fs.write")


def test_a_call_that_was_allowed_may_write_and_delete() -> None:
    changes = (change("a"), change("b", "deleted"))
    decision = judge_changes(changes, PolicyConfig(mode="ask"), undo=False, spoken_for=True)
    assert (decision.decision, decision.reason) == ("allow", "deletes b, as the call was allowed to")
    assert judge_changes(changes, PolicyConfig(mode="plan"), undo=True, spoken_for=True).decision == "deny"


@pytest.mark.parametrize(
    ("made", "rule"), [(change(".git/config"), "fs.protected"), (change("docs/a"), "docs"), (change("a"), "fs.bulk")]
)
def test_a_call_that_was_allowed_still_asks_for_what_nobody_spoke_of(made: Change, rule: str) -> None:
    ask = Rule(id="docs", verdict="confirm", pattern="docs/**", tool="*")
    rules = PolicyConfig(mode="ask", rules=(ask,), bulk_changed=0 if rule == "fs.bulk" else 200)
    decision = judge_changes((made,), rules, undo=True, spoken_for=True)
    assert (decision.decision, decision.rule) == ("confirm", rule)


def test_where_nobody_is_to_ask_the_answer_is_no() -> None:
    decision = judged(change(".git/config"), unattended=True)
    assert (decision.decision, decision.code) == ("deny", "PERMISSION_DENIED")
    assert decision.reason.endswith(", and no person is present to approve")


CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
REPOSITORY = (
    change("x/.git", "created", "folder"),
    change("x/.git/config", "created"),
    change("x/.git/hooks", "created", "folder"),
    change("x/.git/hooks/pre-commit.sample", "created", mode=0o755),
)


@pytest.mark.parametrize(
    ("config", "expected"), [(CONFIG, "allow"), (CONFIG + "\tfsmonitor = x\n", "confirm"), (None, "confirm")]
)
def test_a_new_repository_that_steers_nothing_is_an_ordinary_change(config: str | None, expected: Verdict) -> None:
    configs = {"x/.git/config": config} if config else None
    assert judge_changes(REPOSITORY, PolicyConfig(mode="auto"), undo=True, configs=configs).decision == expected


@pytest.mark.parametrize("name", ["config", "hooks/pre-push", "Hooks/pre-push", "info/attributes", "commondir"])
def test_a_repository_of_another_name_that_is_made_is_protected_where_it_steers_git(name: str) -> None:
    for folder in ("", "vendor/store/"):
        made = [change(f"{folder}{path}", "created") for path in ("HEAD", name)]
        assert verdicts(*made) == ASKS
        assert verdicts(made[1]) == UNASKED  # alone it is a name like any other


def test_what_changes_a_read_only_file_asks_also_where_the_call_was_allowed_but_for_what_is_generated() -> None:
    found = judge_changes((change("a", read_only=True),), PolicyConfig(mode="auto"), undo=True, spoken_for=True)
    assert (found.decision, found.rule) == ("confirm", "fs.read-only-file")
    assert found.reason == "changes files that are read-only: a"
    assert judged(change("a", read_only=True), mode="full").decision == "allow"
    for path in ("node_modules/a/b.js", ".venv/lib/x.py", "__pycache__/a.pyc"):
        assert judged(change(path, read_only=True)).decision == "allow"


def test_a_lock_that_is_left_in_a_repository_asks_and_one_that_is_removed_does_not() -> None:
    found = judged(change(".git/index.lock", "created"))
    assert (found.decision, found.rule) == ("confirm", "fs.lock")
    assert found.reason == "a lock that stays there blocks git until it is deleted: .git/index.lock"
    assert judged(change(".git/index.lock", "deleted")).decision == "allow"
    assert judged(change("poetry.lock", "created")).decision == "allow"
    assert judged(change(".git/index.lock", "created"), mode="full").decision == "allow"


def test_what_is_changed_under_other_names_too_says_so_and_asks_also_where_the_call_was_allowed() -> None:
    found = judge_changes((change("a", shared=True),), PolicyConfig(mode="ask"), undo=True, spoken_for=True)
    assert (found.decision, found.rule) == ("confirm", "fs.hard-link")
    assert found.reason == "changes files that have other names (hard links), maybe outside the workspace: a"
