"""What several active skills leave together."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.protocol.decisions import Narrowing
from handrail.skills.allowed_tools import ALWAYS, collect_allowed_tools, find_restriction
from handrail.store.conversation_state import ActiveSkill

REGISTERED = ("read", "write", "exec", "process", "grep", "mcp__a__x", "mcp__ab__x", *sorted(ALWAYS))


def skill(name: str, *tools: str, **patterns: tuple[str, ...]) -> ActiveSkill:
    return ActiveSkill(name, tools, patterns, (f".claude/skills/{name}",))


def test_nothing_narrows_where_no_skill_names_tools() -> None:
    assert collect_allowed_tools((), REGISTERED) is None
    assert collect_allowed_tools((ActiveSkill("a"),), REGISTERED) is None
    assert find_restriction("exec", (ActiveSkill("a"),)) is None


def test_companions_stay_whatever_is_named() -> None:
    assert collect_allowed_tools((skill("a"),), REGISTERED) == ALWAYS
    assert all(find_restriction(tool, (skill("a"),)) is None for tool in ALWAYS)


def test_who_may_run_commands_may_look_at_them() -> None:
    one = skill("a", "exec", exec=("git:*",))
    assert collect_allowed_tools((one,), REGISTERED) == {"exec", "process", *ALWAYS}
    assert find_restriction("process", (one,)) == Narrowing(skills=("a",), patterns=("git:*",))
    assert find_restriction("process", (skill("a", "process"),)) == Narrowing(skills=("a",))
    assert find_restriction("process", (skill("a", "exec"),)) is None


def test_a_server_is_meant_as_a_whole_and_no_other_one() -> None:
    for spelled in ("mcp__a", "mcp__a__*"):
        assert collect_allowed_tools((skill("s", spelled),), REGISTERED) == {"mcp__a__x", *ALWAYS}
    assert collect_allowed_tools((skill("s", "mcp__a__y"),), REGISTERED) == ALWAYS


TOOLS = st.lists(st.sampled_from(["read", "write", "exec", "grep"]), unique=True, max_size=3)
ACTIVE = st.lists(st.tuples(TOOLS, st.booleans()), max_size=4).map(
    lambda given: [
        skill(f"s{at}", *tools, **({"exec": (f"tool{at}:*",)} if limited and "exec" in tools else {}))
        for at, (tools, limited) in enumerate(given)
    ]
)


@given(ACTIVE, ACTIVE)
def test_a_further_skill_takes_nothing_from_the_others(some: list[ActiveSkill], more: list[ActiveSkill]) -> None:
    few, many = collect_allowed_tools(some, REGISTERED), collect_allowed_tools([*some, *more], REGISTERED)
    if few is not None and many is not None:
        assert few <= many
    one, both = find_restriction("exec", some), find_restriction("exec", [*some, *more])
    if one is not None and both is not None:
        assert set(one.patterns) <= set(both.patterns)
