"""git's read-only sub-commands: which are proven, and what they read."""

import pytest
from tests.policy.programs.support import list_example_faults, read, used

from handrail.policy.programs import git
from handrail.policy.programs.registry import build_registry
from handrail.policy.programs.spec import ProgramSpec


@pytest.mark.parametrize("table", git.TABLES, ids=lambda table: table.name)
def test_every_table_has_examples_and_they_hold(table: ProgramSpec) -> None:
    assert table.match
    assert table.no_match or table.operands is None
    assert list_example_faults(table, build_registry()) == []


@pytest.mark.parametrize(
    "command",
    [
        "git --no-pager log -3", "git -P diff", "git log --oneline -20", "git log --graph --all --decorate --oneline",
        "git log --since=yesterday --until now --author=me --no-merges", "git log -p -2 -- src/a.py", "git log -S x -p",
        "git log --format='%h %an %s' -n5", "git log --pretty=oneline main..feature", "git log -1 --pretty=%B",
        "git log --diff-filter=D --summary", "git log --stat --follow -- a.py", "git show --name-only HEAD~2",
        "git show HEAD^", "git diff --stat main...HEAD", "git diff -U0 HEAD -- a b", "git diff --name-only --cached",
        "git diff --word-diff=color", "git diff -w --ignore-blank-lines", "git blame -L 5,+10 a.py", "git status -uall",
        "git branch -a --contains HEAD", "git branch --sort=-committerdate", "git tag -l 'v*' --sort=-v:refname",
        "git rev-parse --short=8 HEAD", "git rev-list --count main..HEAD", "git remote -v", "git config --get a.b",
        "git stash list", "git stash show -p", "git reflog -5", "git worktree list", "git ls-files -om",
        "git cat-file -p HEAD:a.py", "git shortlog -sn --all", "git describe --tags", "git merge-base main HEAD",
        "git grep -n 'foo(' -- '*.py'", "git ls-tree -r HEAD --name-only", "git show-ref --tags", "git name-rev HEAD",
        "git symbolic-ref --short HEAD", "git check-ignore -v x", "git count-objects", "git version", "git --version",
        "git whatchanged -3", "git diff-tree -r HEAD", "git for-each-ref --format='%(refname)'", "git cherry -v main",
    ],
)  # fmt: skip
def test_everyday_questions_are_proven(command: str) -> None:
    assert read(command).effect == "proven"


@pytest.mark.parametrize(
    "command",
    [
        "git -c core.pager=x log", "git -C /x log", "git -p log", "git --git-dir=x log", "git --exec-path=x log",
        "git --config-env=a=b log", "git --no-pager -c a=b log", "git --no-pager", "git", "git log --output=x",
        "git log --output x", "git diff --output=x", "git show --ext-diff", "git log --textconv -p", "git diff -Oorder",
        "git log --show-signature", "git log --format=%G?", "git log --format='%h %+GS'", "git log --pretty=mine",
        "git log --format='%(describe)'", "git log --format=format:%GK", "git log --diff-merges=remerge",
        "git show --format=fulle", "git diff --no-index a b", "git grep -Oless x", "git grep --no-index x",
        "git log --outpu=x", "git status --por", "git log --format --output=x", "git log -U --output=x",
        "git stash show -S 0 -G --output=x", "git stash show -I 0 -S --output=x", "git stash show -S --output=x",
        "git log -I -n --output=x", "git diff -I -S --output=x", "git show -l -G --output=x",
        "git log --max-parents --output=x", "git shortlog --committer --output=x", "git tag --format='%(signature)'",
        "git cat-file --batch", "git cat-file --filters HEAD:a", "git for-each-ref --format='%(*describe:tags)'",
        "git help log", "git log --help", "git difftool", "git var -l", "git hash-object a", "git unknown",
        "git submodule status", "git submodule foreach ls", "git archive HEAD", "git bundle create x HEAD",
        "git format-patch -1", "git gc", "git fsck --lost-found", "git range-diff a b", "git bisect log",
        "git blame --textconv a",
        "git branch --sort=v:signature", "git branch --sort=-*signature", "git tag --sort -version:*signature:key",
        "git for-each-ref --sort=describe", "git branch --sort=-describe:tags",
        "git rev-list --stdin", "git check-attr --stdin -a", "git notes show", "git fast-export HEAD",
    ],
)  # fmt: skip
def test_what_may_write_or_run_a_program_asks(command: str) -> None:
    assert read(command).effect == "unproven" or read(command).rule == "git.network"


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("git log", []),
        ("git log main", ["r~ main"]),
        ("git log origin/main..HEAD", ["r~ origin/main..HEAD"]),
        ("git log main -- src/a.py", ["r~ main", "r src/a.py"]),
        ("git diff src/a.py", ["r~ src/a.py"]),
        ("git diff ../other", ["r ../other"]),
        ("git diff a/../../b", ["r a/../../b"]),
        ("git log /etc/passwd", ["r /etc/passwd"]),
        ("git log -- '~/x'", ["r ~/x"]),
        ("git diff .env", ["r .env"]),
        ("git blame deploy.pem", ["r deploy.pem"]),
        ("git show HEAD:.env", ["r .env"]),
        ("git show :.env", ["r .env"]),
        ("git show :2:.env", ["r 2:.env", "r .env"]),
        ("git show 'stash@{0}:.env'", ["r .env"]),
        ("git show 'HEAD@{10:30}:.env'", ["r .env"]),
        ("git log 'HEAD@{10:30}'", ["r~ HEAD@{10:30}"]),
        ("git show 'a}:.env'", ["r .env"]),
        ("git show HEAD:", ["r~ HEAD:"]),
        ("git diff HEAD~1:.env..HEAD:b", ["r .env", "r b"]),
        ("git diff HEAD:a...HEAD~1:id_rsa", ["r a", "r id_rsa"]),
        ("git show HEAD:./../x", ["r ./../x"]),
        ("git show ':/fix the bug'", ["r fix the bug"]),
        ("git log -- ':(top)src'", ["r src"]),
        ("git log -- ':(icase,glob)**/.ENV'", ["r* **/.ENV"]),
        ("git log -L1,2:", []),
        ("git log -- ':(exclude).env'", []),
        ("git log -- . ':!.env' ':^b' ':/!c'", ["r ."]),
        ("git log -- ::src", ["r src"]),
        ("git log -- ':(odd'", ["r (odd"]),
        ("git log :", []),
        ("git log -- :", []),
        ("git diff -- '*.py'", ["r* *.py"]),
        ("git diff '*.py'", ["r* *.py"]),
        ("git diff -- '*.env'", ["r* *.env", "r .env", "r ..env"]),
        ("git diff -- 'a/?env'", ["r* a/?env", "r a/.env"]),
        ("git diff -- '*nv' '*.json' '*'", ["r* *nv", "r* .*nv", "r* *.json", "r* *"]),
        ("git diff -- '*ssh/a' '[!x]env'", ["r* *ssh/a", "r .ssh/a", "r* [!x]env", "r* .*env"]),
        ("git diff -- '\\.env' 'a/.e\\nv'", ["r \\.env", "r .env", "r a/.e\\nv", "r a/.env"]),
        ("git diff -- ?env", ["r* ./?env", "r ./.env"]),
        ("git diff ?env", ["r* ./?env", "r ./.env"]),
        ("git diff a/*.py", ["r* a/*.py"]),
        ("git log -L10,20:src/a.py", ["r src/a.py"]),
        ("git log -L :main:.env", ["r main:.env", "r .env"]),
        ("git log -L10,20", []),
        ("git log -L '/[{]*/,+5:.env'", ["r .env"]),
        ("git cat-file blob HEAD:.env", ["r~ blob", "r .env"]),
        ("git blame --contents x a.py", ["r x", "r~ a.py"]),
        ("git grep needle", []),
        ("git grep a:/etc src", ["r~ src"]),
        ("git grep -e needle /etc", ["r /etc"]),
        ("git grep -h needle -- .env", ["r .env"]),
        ("git grep -f words HEAD:.env", ["r words", "r .env"]),
        ("git grep n*e", ["r* n*e"]),
        ("git grep needle s*", ["r* s*"]),
        ("git check-ignore .env", []),
        ("git ls-files .env src", []),
        ("git ls-files /etc ../x", ["r /etc", "r ../x"]),
        ("git status .env", []),
        ("git config -f /etc/gitconfig --list", ["r /etc/gitconfig"]),
    ],
)  # fmt: skip
def test_the_paths_in_revisions_count(command: str, paths: list[str]) -> None:
    assert read(command).effect == "proven"
    assert used(command) == paths


@pytest.mark.parametrize(
    ("command", "rule", "effect", "grant"),
    [
        ("git commit -m x", "git.write", "unproven", "git commit"),
        ("git add .", "git.write", "unproven", "git add"),
        ("git --no-pager commit", "git.write", "unproven", "git commit"),
        ("git branch -d x", "git.write", "unproven", "git branch"),
        ("git tag v1", "git.write", "unproven", "git tag"),
        ("git stash", "git.write", "unproven", "git stash"),
        ("git config a.b c", "git.write", "unproven", ""),
        ("git reflog expire --all", "git.write", "unproven", "git reflog"),
        ("git symbolic-ref HEAD refs/heads/x", "git.write", "unproven", "git symbolic-ref"),
        ("git push", "git.network", "network", ""),
        ("git fetch --upload-pack=x", "git.network", "network", ""),
        ("git ls-remote --exec=x y", "git.network", "network", ""),
        ("git remote show origin", "git.network", "network", ""),
        ("git remote update", "git.network", "network", ""),
        ("git remote add x y", "git.write", "unproven", ""),
        ("git submodule update", "git.network", "network", ""),
        ("git log --output=x", "exec.option", "unproven", ""),
        ("git -c a=b push", "exec.option", "unproven", ""),
    ],
)
def test_what_changes_the_repository_or_reaches_another_has_its_class(
    command: str, rule: str, effect: str, grant: str
) -> None:
    found = read(command)
    assert (found.rule, found.effect, found.grant) == (rule, effect, grant)


def test_a_class_names_the_whole_command() -> None:
    assert read("git commit -m x").reason == "git commit changes the repository and may run its hooks"
    assert read("git branch -d x").reason == "git branch's option -d is not among the read-only options"
    assert used("git commit -m x") == ["r~ x"]
