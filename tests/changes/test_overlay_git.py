"""What git does every day is kept unasked in auto mode; what steers git, or leads it elsewhere, asks."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.changes.support import World, a_world

from handrail.changes.overlay.changes import examine, read_git_configs
from handrail.policy.changeset import judge_changes
from handrail.policy.config import PolicyConfig
from handrail.protocol.decisions import Decision

REPOSITORY = """git init -q -b main; for i in 1 2 3; do echo $i >a$i; git add .; git commit -qm $i; done
for i in $(seq 30); do git branch b$i; done
git init -q --bare ../up.git; git remote add origin ../up.git; git push -q origin main; git fetch -q"""
BRANCHED = f"""{REPOSITORY}; git checkout -q b1; echo q >q; git add .; git commit -qm q
git checkout -q main; echo r >r; git add .; git commit -qm r"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    for who in ("AUTHOR", "COMMITTER"):
        for what in ("NAME", "EMAIL"):
            monkeypatch.setenv(f"GIT_{who}_{what}", "x")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    with a_world(tmp_path) as one:
        yield one


def judged(world: World, before: str, script: str) -> Decision:
    world.sh(before)
    layer = world.layer(script)
    examined = examine(world.workspace(), layer)
    configs = read_git_configs(world.workspace(), layer, examined)
    return judge_changes(examined.changes, PolicyConfig(mode="auto"), undo=True, configs=configs)


@pytest.mark.parametrize(
    ("before", "script"),
    [
        ("true", "git init"),
        ("echo a >a", "git init; git add .; git commit -qm x"),
        ("echo a >a", "git init -q; git add .; git commit -qm x; echo b >a; git stash -q; git gc -q"),
        (REPOSITORY, "echo x >x; git add .; git commit -qm y; git tag v1"),
        (REPOSITORY, "git gc -q"),
        (REPOSITORY, "git gc -q --aggressive --prune=now"),
        (REPOSITORY, "echo z >a1; git stash -q; git stash pop -q"),
        (REPOSITORY, "git checkout -q -b track origin/main"),
        (REPOSITORY, "git checkout -q -b t origin/main; git checkout -q main; git branch -q -d t"),
        (BRANCHED, "git merge -q b1 -m m"),
        (BRANCHED, "git rebase -q b1"),
        (REPOSITORY, "git reset -q --hard HEAD~1"),
        (REPOSITORY, "git clone -q . sub"),
        (REPOSITORY, "git clone -q --depth 1 file://$PWD sub"),
        (REPOSITORY, "git config user.name me"),
    ],
)
def test_everyday_work_is_unasked(world: World, before: str, script: str) -> None:
    decision = judged(world, before, script)
    assert decision.decision == "allow", decision.reason


@pytest.mark.parametrize(
    ("script", "rule"),
    [
        ("git config core.hooksPath h", "fs.config"),
        ("git config core.fsmonitor ./x", "fs.config"),
        ("git config alias.x '!sh'", "fs.config"),
        ("git config filter.x.clean sh", "fs.config"),
        ("git config diff.x.textconv sh", "fs.config"),
        ("git remote set-url origin https://elsewhere.example/x", "fs.config"),
        ("git config branch.main.remote https://elsewhere.example/x", "fs.config"),
        ("printf '[core] hooksPath = x' >>.git/config", "fs.protected"),
        ("printf '\\xff' >>.git/config", "fs.protected"),
        ("echo x >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", "fs.protected"),
        ("mkdir .husky; echo x >.husky/pre-commit", "fs.protected"),
        ("mkdir .githooks; echo x >.githooks/pre-commit", "fs.protected"),
        ("rm -rf .git/objects", "fs.protected"),
        ("rm -rf .git", "fs.protected"),
        ("echo /x >.git/objects/info/alternates", "fs.protected"),
        ("git clone -q . sub; git -C sub config core.hooksPath x", "fs.config"),
        ("git clone -q . sub; echo x >sub/.git/hooks/post-checkout", "fs.config"),
        ("ln -s $HOME/.bashrc out", "fs.link"),
        ("mkdir x.git; cd x.git; git init -q --bare .; git config core.hooksPath x", "fs.protected"),
    ],
)
def test_what_steers_git_asks(world: World, script: str, rule: str) -> None:
    decision = judged(world, REPOSITORY, script)
    assert (decision.decision, rule in {part.rule for part in decision.parts}) == ("confirm", True), decision


def test_a_setting_that_was_there_before_does_not_ask_again(world: World) -> None:
    decision = judged(world, f"{REPOSITORY}; git config core.hooksPath mine", "git checkout -q -b track origin/main")
    assert decision.decision == "allow", decision.reason


def test_a_virtual_environment_may_link_to_its_interpreter(world: World) -> None:
    decision = judged(
        world, "true", "mkdir -p .venv/bin; ln -s $HOME/.pyenv/versions/3/bin/python3.11 .venv/bin/python"
    )
    assert decision.decision == "allow", decision.reason
