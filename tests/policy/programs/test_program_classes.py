"""Classes of programs that need approval."""

from collections import Counter

import pytest
from tests.policy.deciding import decided
from tests.policy.programs.support import read

from handrail.policy.config import Rule
from handrail.policy.programs.classes import GROUPS
from handrail.policy.programs.registry import load_registry
from handrail.policy.programs.wrapper_table import CLASSED, WRAPPERS
from handrail.policy.rules.lint import review
from handrail.policy.wrappers import can_run_code

WORDS_OF_BASH = {"time", "coproc"}
"""No rule can name them."""


@pytest.mark.parametrize("name", sorted(WRAPPERS.keys() - WORDS_OF_BASH))
def test_no_rule_allows_what_a_program_starts_by_allowing_that_program(name: str) -> None:
    assert can_run_code(tuple(name.split()))
    [fault] = review((Rule(id="a", verdict="allow", pattern=name, any_args=True),))
    assert fault.is_error
    found = decided(f"{name} evil.py", rules=(Rule(id="a", verdict="allow", pattern=name),))
    assert (found.decision, found.rule) != ("allow", "a")


def test_a_program_that_starts_others_is_a_wrapper_unless_its_class_says_more() -> None:
    [wrappers] = [group for group in GROUPS if group.rule == "exec.wrapper"]
    assert wrappers.programs == CLASSED
    for name in WRAPPERS:
        words = tuple(name.split())
        found = load_registry(words[0]).find(words)
        assert found is not None, name
        assert found.group is not None, name
        assert (found.group.rule == "exec.wrapper") == (name in CLASSED), name


def test_no_program_is_in_two_classes() -> None:
    counts = Counter(program for group in GROUPS for program in group.programs)
    assert [program for program, number in counts.items() if number > 1] == []


def test_what_runs_any_code_or_reaches_the_network_is_never_granted_for_good() -> None:
    for group in GROUPS:
        if group.rule in {"exec.interpreter", "exec.wrapper", "exec.pager"} or group.effect == "network":
            assert not group.grantable, group.rule


def test_no_class_proves_anything() -> None:
    assert {group.effect for group in GROUPS} == {"unproven", "network"}


@pytest.mark.parametrize(
    ("command", "rule", "effect", "grant"),
    [
        ("python x.py", "exec.interpreter", "unproven", ""),
        ("python3.11 -c x", "exec.interpreter", "unproven", ""),
        ("python3.11 x.py --version", "exec.interpreter", "unproven", ""),
        ("python3 --version -c x", "exec.interpreter", "unproven", ""),
        ("lua5.4 x.lua", "exec.interpreter", "unproven", ""),
        ("awk 1 a", "exec.interpreter", "unproven", ""),
        ("sed s/a/b/e a", "exec.interpreter", "unproven", ""),
        ("bash x.sh", "exec.interpreter", "unproven", ""),
        ("/usr/bin/python3 x.py", "exec.interpreter", "unproven", ""),
        ("go run x.go", "exec.interpreter", "unproven", ""),
        ("vim a", "exec.interpreter", "unproven", ""),
        ("env A=b ls", "exec.wrapper", "unproven", ""),
        ("xargs rm", "exec.wrapper", "unproven", ""),
        ("sudo ls", "exec.wrapper", "unproven", ""),
        ("timeout 5 make", "exec.wrapper", "unproven", ""),
        ("find . -exec ls", "exec.wrapper", "unproven", ""),
        ("find . -delete", "exec.wrapper", "unproven", ""),
        ("uv run python x", "exec.wrapper", "unproven", ""),
        ("bundle exec rake", "exec.wrapper", "unproven", ""),
        (". x.sh", "exec.wrapper", "unproven", ""),
        ("cross-env python3 x.py", "exec.wrapper", "unproven", ""),
        ("nodemon x.js", "exec.wrapper", "unproven", ""),
        ("rye run x", "exec.wrapper", "unproven", ""),
        ("npx x", "exec.package-manager", "network", ""),
        ("less a", "exec.pager", "unproven", ""),
        ("pytest -q tests", "exec.test", "unproven", "pytest"),
        ("python3 -m pytest", "exec.test", "unproven", "pytest"),
        ("uv run pytest", "exec.test", "unproven", "uv run pytest"),
        ("cargo test", "exec.test", "unproven", "cargo test"),
        ("go test ./...", "exec.test", "unproven", "go test"),
        ("npm test", "exec.test", "unproven", "npm test"),
        ("npm run test", "exec.test", "unproven", "npm run test"),
        ("cargo build", "exec.build", "unproven", "cargo build"),
        ("cargo --config x build", "exec.build", "unproven", ""),
        ("go build", "exec.build", "unproven", "go build"),
        ("make", "exec.build", "unproven", "make"),
        ("make lint", "exec.build", "unproven", "make lint"),
        ("make -f x", "exec.build", "unproven", ""),
        ("gcc-12 a.c", "exec.build", "unproven", "gcc-12"),
        ("ruff format src", "exec.formatter", "unproven", "ruff format"),
        ("prettier --write a", "exec.formatter", "unproven", "prettier"),
        ("npm install", "exec.package-manager", "network", ""),
        ("npm run dev", "exec.package-manager", "unproven", "npm run dev"),
        ("npm run", "exec.package-manager", "unproven", ""),
        ("npm run --silent dev", "exec.package-manager", "unproven", ""),
        ("npx cowsay", "exec.package-manager", "network", ""),
        ("pip install x", "exec.package-manager", "network", ""),
        ("python -m pip install x", "exec.package-manager", "network", ""),
        ("pip list --outdated", "exec.package-manager", "unproven", "pip list"),
        ("cargo install x", "exec.package-manager", "network", ""),
        ("go get x", "exec.package-manager", "network", ""),
        ("apt-get install x", "exec.package-manager", "network", ""),
        ("npm --version", "exec.package-manager", "unproven", ""),
        ("curl example.org", "exec.network", "network", ""),
        ("docker ps", "exec.network", "network", ""),
        ("tar xf a.tar", "exec.archive", "unproven", ""),
        ("kill 1", "exec.system", "unproven", ""),
        ("frob x", "exec.unknown", "unproven", ""),
    ],
)
def test_a_program_is_of_its_class(command: str, rule: str, effect: str, grant: str) -> None:
    found = read(command)
    assert (found.rule, found.effect, found.grant) == (rule, effect, grant)


def test_the_reason_names_the_command_as_far_as_the_class_does() -> None:
    assert read("cargo test -q").reason == "cargo test runs the project's own code"
    assert read("python3 --version -c x").reason == "python3 runs the code that it is given"


@pytest.mark.parametrize(
    "command", ["python3 --version", "python3.11 -V", "node -v", "gcc --version", "make --version"]
)
def test_a_question_for_the_version_is_proven(command: str) -> None:
    assert read(command).effect == "proven"


@pytest.mark.parametrize("command", ["go version", "rustc --version", "cargo -V", "npm -v", "yarn -v", "java -version"])
def test_not_where_the_folder_decides_what_answers(command: str) -> None:
    assert read(command).effect == "unproven"
