"""Routine git maintenance in a change set needs no approval. Changes that steer git do."""

import pytest
from tests.policy.deciding import change

from handrail.policy.changeset import find_repository, judge_changes
from handrail.policy.config import PolicyConfig
from handrail.protocol.changes import Change
from handrail.protocol.decisions import Decision

HASH = "0" * 40
OBJECT = f".git/objects/ab/{HASH[2:]}"
PACK = f".git/objects/pack/pack-{HASH}.pack"
CORE = "[core]\n\tbare = false\n"
BRANCH = '[branch "x"]\n\tremote = origin\n'


def judged(*changes: Change, configs: dict[str, str] | None = None) -> Decision:
    return judge_changes(changes, PolicyConfig(mode="auto"), undo=True, configs=configs)


def test_objects_that_were_packed_may_go() -> None:
    assert judged(change(OBJECT, "deleted"), change(PACK, "created")).decision == "allow"
    assert judged(change(OBJECT, "deleted")).rule == "fs.protected"
    assert judged(change(OBJECT, "deleted"), change(f"sub/{PACK}", "created")).rule == "fs.protected"
    assert judged(change(f".git/objects/{HASH}.pack", "created"), change(OBJECT, "deleted")).rule == "fs.protected"


def test_however_many_there_are() -> None:
    gone = [change(f".git/objects/ab/{n:038x}", "deleted") for n in range(300)]
    assert judged(*gone, change(PACK, "created")).decision == "allow"
    references = [change(f".git/refs/heads/{n}", "deleted") for n in range(30)]
    assert judged(*references, change(".git/packed-refs", "created")).decision == "allow"
    assert judged(*references, change(".git/packed-refs", "deleted")).rule == "fs.bulk"
    assert judged(*references).rule == "fs.bulk"


@pytest.mark.parametrize("name", ["info/refs", "objects/info/packs", "objects/info/commit-graphs/graph-ab.graph"])
def test_lists_of_objects_are_everyday_work(name: str) -> None:
    assert judged(change(f".git/{name}", "created")).decision == "allow"
    assert judged(change(f".git/{name}", "created", kind="link")).rule == "fs.protected"
    assert judged(change(f".git/{name}", replaces="folder")).rule == "fs.protected"


def test_a_configuration_that_steers_as_before_is_everyday_work() -> None:
    texts = {".git/config": CORE + BRANCH, "old": CORE}
    assert judged(change(".git/config", before="old"), configs=texts).decision == "allow"
    assert judged(change(".git/config", "created"), configs={".git/config": CORE}).decision == "allow"


def test_one_that_runs_programs_asks_and_names_the_setting() -> None:
    texts = {".git/config": CORE + "\thooksPath = x\n", "old": CORE}
    decision = judged(change(".git/config", before="old"), configs=texts)
    assert (decision.decision, decision.rule, decision.subject) == (
        "confirm", "fs.config", "core.hookspath in .git/config",
    )  # fmt: skip
    assert decision.reason == "changes which programs git runs, or its remotes: core.hookspath in .git/config"


@pytest.mark.parametrize(
    ("made", "configs"),
    [
        (change(".git/config", before="old"), {".git/config": CORE}),
        (change(".git/config", before="old"), {"old": CORE}),
        (change(".git/config", "deleted", before="old"), {"old": CORE}),
        (change(".git/config", "mode", before="old"), {"old": CORE, ".git/config": CORE}),
        (change(".git/config", "created", kind="link"), {".git/config": CORE}),
        (change(".git/config", replaces="folder"), {".git/config": CORE}),
        (change(".git/modules/x/config", "created"), {".git/modules/x/config": CORE}),
        (change(".git/config", before="old"), {".git/config": "[core] x=y", "old": CORE}),
    ],
)
def test_one_that_cannot_be_told_asks_like_anything_that_steers(made: Change, configs: dict[str, str]) -> None:
    assert judged(made, configs=configs).rule == "fs.protected"


@pytest.mark.parametrize(
    ("path", "target", "rule"),
    [
        ("out", "/home/x/.bashrc", "fs.link"),
        ("out", "../x", "fs.link"),
        ("out", "/usr/../home/x", "fs.link"),
        (".venv/bin/python3", "/usr/bin/python3", "fs.write"),
        (".venv/bin/python3", "/home/x/.pyenv/versions/3.11/bin/python3.11", "fs.write"),
        ("notes", "/home/x/bin/python3", "fs.link"),
        ("off", "/dev/null", "fs.write"),
    ],
)
def test_links_that_lead_outside_ask_but_for_those_to_programs(path: str, target: str, rule: str) -> None:
    made = change(path, "created", kind="link", target=target, outside=True)
    assert judged(made).rule == rule
    assert judged(change(path, "created", kind="link", target="a")).rule == "fs.write"


def test_files_that_only_moved_are_not_deleted() -> None:
    moved = [change(f"new/{n}", "renamed", renamed_from=f"old/{n}") for n in range(30)]
    gone = [change(f"old/{n}", "deleted") for n in range(30)]
    assert judged(*moved, *gone).rule == "fs.write"
    assert judged(*gone).rule == "fs.bulk"


def test_a_file_that_became_a_folder_is_deleted() -> None:
    assert judged(change("a", kind="folder", replaces="file")).rule == "fs.delete"


@pytest.mark.parametrize(
    "path",
    ["node_modules/x/.github/f.yml", "a/.venv/lib/python3/site-packages/pip/_vendor/certifi/cacert.pem",
     "node_modules/x/.env", "node_modules/.yarnrc", "site-packages/x/test.key"],
)  # fmt: skip
def test_what_installed_packages_bring_with_them_is_ordinary(path: str) -> None:
    assert judged(change(path, "created")).rule == "fs.write"


@pytest.mark.parametrize(
    ("made", "rule"),
    [
        (change("node_modules/x/.env"), "fs.secret"),
        (change("node_modules/x/a", "renamed", renamed_from=".env"), "fs.secret"),
        (change(".ssh/node_modules/x.pem", "created"), "fs.secret"),
        (change(".vscode/node_modules/x/.github/f", "created"), "fs.protected"),
        (change("node_modules/x/.git/hooks/post-checkout", "created"), "fs.protected"),
        (change("node_modules/x/.git", "created"), "fs.protected"),
        (change("x/.github/f.yml", "created"), "fs.protected"),
        (change("node_modules", "renamed", renamed_from=".github/x"), "fs.protected"),
    ],
)
def test_what_they_bring_and_what_was_there_are_told_apart(made: Change, rule: str) -> None:
    assert judged(made).rule == rule


@pytest.mark.parametrize(
    ("path", "repository"),
    [
        ("sub/.git/index", "sub/.git"),
        (".git/COMMIT_EDITMSG", ".git"),
        (".git/hooks/pre-commit", None),
        ("src/a.py", None),
    ],
)
def test_everyday_work_of_git_is_listed_as_its_repository(path: str, repository: str | None) -> None:
    assert find_repository(change(path, "modified")) == repository
