"""Programs that start another one are proven if that one is, and nothing else slips in with it."""

import pytest
from tests.policy.deciding import decided

from handrail.policy.parse import parse_command


@pytest.mark.parametrize(
    "text",
    [
        "timeout 10 ls -la",
        "timeout 1.5s git status",
        "timeout 5 timeout 3 cat a",
        "ls | xargs cat",
        "ls | xargs -0 -n 1 grep -l x",
        "ls | xargs -I{} wc -l src/{}",
        "ls | xargs -I % head -5 %",
        "ls | xargs -n1 basename",
        "find . -name '*.py' -exec grep -l x {} +",
        r"find src -type f -exec sed -n 1,5p {} \;",
        r"find . -exec cat {} \; -exec wc -l {} +",
        r"find . -name a -exec echo found {} \;",
        "LC_ALL=C sort a",
        "TZ=Europe/Berlin date",
        "NO_COLOR=1 LC_ALL=C.UTF-8 ls",
        "GIT_PAGER=cat git log",
        "time ls",
        "time -p LC_ALL=C sort a | uniq -c",
    ],
)
def test_a_starter_of_a_proven_command_is_proven(text: str) -> None:
    assert decided(text, "plan").decision == "allow"


@pytest.mark.parametrize(
    "text",
    [
        "timeout 5 rm a",
        "timeout ls cat a",
        "timeout -s KILL 5 ls",
        "timeout 5 canary",
        "timeout 5",
        "timeout * cat",
        "xargs",
        "xargs rm",
        "xargs sort",
        "xargs rg x",
        "xargs git log",
        "xargs file",
        "xargs sed -n 1p",
        "xargs find . -name",
        "xargs -a list cat",
        "xargs --arg-file=list cat",
        "xargs -I cat cat",
        "xargs -Icat cat x",
        "xargs -I{} {}",
        "xargs -i cat",
        "xargs -o cat",
        "xargs cat >out",
        "find . -exec rm {} +",
        r"find . -exec sed -n {}p a \;",
        r"find . -exec sed -n 1p{} a \;",
        r"find . -exec jq {} a.json \;",
        "find . -exec uniq {} +",
        r"find . -exec git log {} \;",
        r"find . -exec {} \;",
        "find . -exec cat {}",
        r"find . -exec cat {} \; -delete",
        r"find . -name -exec cat {} \; -delete",
        r"find . -execdir cat {} \;",
        r"find . -ok cat {} \;",
        r"find . -exec sh -c 'cat {}' \;",
        "LD_PRELOAD=x ls",
        "PATH=. ls",
        "GIT_PAGER=less git log",
        "GIT_EXTERNAL_DIFF=x git diff",
        "GIT_OPTIONAL_LOCKS=1 git status",
        "LC_ALL=../../x ls",
        "LOCPATH=. ls",
        "TZ=/etc/x date",
        "TZ=:../x date",
        "LC_ALL=C LD_PRELOAD=x ls",
        "LC_ALL=C ./run.sh",
        "LC_ALL=C",
        "LC_ALL=$x ls",
        "'LC_ALL=C' ls",
        "LC_ALL=C time ls",
        "ls | time cat",
        "time",
        "time -o out ls",
        "time rm a",
        "'time' ls",
    ],
)
def test_a_starter_of_anything_else_is_not_proven(text: str) -> None:
    assert decided(text, "plan").decision == "deny"


@pytest.mark.parametrize(
    "text", ["timeout 5 cat .env", "xargs cat .env", r"find . -exec cat .env \;", "LC_ALL=C cat .env", "time cat .env"]
)
def test_a_credential_is_denied_behind_a_starter(text: str) -> None:
    assert decided(text).rule == "fs.secret"


def test_a_started_git_gets_its_guards_and_a_prefix_stays() -> None:
    assert parse_command("timeout 5 git diff").bash_text == "'timeout' '5' 'git' 'diff' '--no-ext-diff' '--no-textconv'"
    assert parse_command("time LC_ALL=C ls").bash_text == "time LC_ALL=C 'ls'"


def test_a_grant_for_pytest_is_offered_for_the_module_too() -> None:
    assert decided("python3 -m pytest -q tests").grants == ("pytest",)
    assert decided("python -m unittest").grants == ("python -m unittest",)
    assert decided("python3 -m pip list").grants == ()
