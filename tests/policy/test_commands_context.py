"""Facts about the paths of a command, and what follows from them."""

from typing import Any

import pytest

from handrail.policy.commands import PolicyContext, build_context
from handrail.policy.config import RestrictedProfile
from handrail.policy.decide import PolicyConfig
from handrail.policy.programs.spec import PathUse
from handrail.policy.rules.rulebook import build_rulebook
from handrail.protocol.decisions import CommandFact, Facts, PathFact


def fact(path: str, access: str = "read", **more: Any) -> PathFact:
    return PathFact(path=path, access=access, kind="file", **{"real": path, **more})  # type: ignore[arg-type]


def case(*facts: PathFact, restriction: RestrictedProfile | None = None, **command: Any) -> PolicyContext:
    rules = PolicyConfig("ask", restriction=restriction)
    return build_context(CommandFact(text="", **command), Facts(paths=facts), rules, build_rulebook(()))


@pytest.mark.parametrize(
    ("use", "known", "only_reads"),
    [
        (PathUse("a", "read"), fact("a"), True),
        (PathUse("./a", "read"), fact("./a", real="a"), True),
        (PathUse(".git/config", "read"), fact(".git/config"), True),
        (PathUse("./.git/config", "read"), fact("./.git/config", real=".git/config"), True),
        (PathUse("a", "read"), fact("b"), False),
        (PathUse("a", "read"), fact("a", "write"), False),
        (PathUse("a", "write"), fact("a"), False),
        (PathUse("a", "delete"), fact("a"), False),
        (PathUse("a*", "read", is_glob=True), fact("a*"), False),
        (PathUse("a", "read"), fact("a", real=None), False),
        (PathUse("a", "read"), fact("a", real="b", named="a"), False),
        (PathUse("a", "read"), fact("a", real=".env"), False),
        (PathUse(".env", "read"), fact(".env", real="a"), False),
        (PathUse(".env", "read"), fact(".env"), False),
        (PathUse("a", "read"), fact("a", shared=True), True),
        (PathUse("a", "read"), fact("a", shared=True, credential=True), False),
    ],
)
def test_reading_a_plain_path_inside_needs_no_verdict_of_its_own(
    use: PathUse, known: PathFact, only_reads: bool
) -> None:
    assert case(known).is_plain_read(use) is only_reads
    assert not case(known, restriction=RestrictedProfile((), ())).is_plain_read(use)


def test_of_a_glob_the_folder_that_it_starts_from_is_known() -> None:
    known = case(fact("a"), fact("a/*.py", real="x"), fact("a", "delete"))
    assert known.find_fact(PathUse("a/*.py", "read", is_glob=True)) == fact("a")
    assert known.find_fact(PathUse("a/*.py", "read")) == fact("a/*.py", real="x")
    assert known.find_fact(PathUse("a", "delete")) == fact("a", "delete")
    assert known.find_fact(PathUse("a", "write")) is None


@pytest.mark.parametrize(
    ("word", "known", "inside"),
    [
        ("a", (), True),
        ("a/b", (), True),
        ("a/", (), True),
        ("a~", (), True),
        ("a..b/..c", (), True),
        (".git/config", (), False),
        ("a", (fact("a"),), True),
        ("a", (fact("a", real=".git/config"),), False),
        ("/a", (), False),
        ("~", (), False),
        ("~/a", (), False),
        ("..", (), False),
        ("a/../b", (), False),
        (".env", (), False),
        ("a/.ssh/b", (), False),
        (".env", (fact(".env", real="a"),), False),
        ("a", (fact("a", real=None),), False),
        ("a", (fact("a", "write", real=None),), False),
        ("a", (fact("a", "delete", real=None),), False),
        ("a", (fact("a"), fact("a", "delete", real=None)), False),
        ("a", (fact("a", real=".env"),), False),
        ("a", (fact("a", credential=True),), False),
        ("a", (fact("a", "write", real=".env"),), False),
        ("a", (fact("a", "delete", real=".env"),), False),
        ("/data/a", (fact("/data/a"),), True),
        ("/data/a", (fact("/data/b"),), False),
        ("/data/a", (fact("/data/a", "write"),), False),
        ("/data/a", (fact("/data/a", "delete"),), False),
        ("/data/a", (fact("/data/a", real=None),), False),
        ("a/../b", (fact("a/../b", real="b"),), True),
        ("~/a", (fact("~/a"),), True),
    ],
)
def test_an_operand_is_inside_by_its_name_or_by_what_is_known(
    word: str, known: tuple[PathFact, ...], inside: bool
) -> None:
    assert case(*known).is_inside(word, (".",)) is inside


def test_an_operand_is_inside_only_where_it_is_in_every_folder_that_the_command_may_run_in() -> None:
    known = case(fact("sub/a", real=None))
    assert known.is_inside("a", (".", "other"))
    assert not known.is_inside("a", (".", "sub"))
    assert not known.is_inside("a", ("sub", "."))
    assert not known.is_inside("a", ("..",))
    assert not known.is_inside("a", ("/etc",))


@pytest.mark.parametrize(
    ("tier", "background", "undo"),
    [(3, False, True), (4, False, True), (2, False, False), (0, False, False), (3, True, False)],
)
def test_what_a_layer_keeps_can_be_undone_but_not_what_goes_on_on_the_real_tree(
    tier: int, background: bool, undo: bool
) -> None:
    assert case(tier=tier, background=background).undo is undo
