"""Wrong arguments are refused with every problem at once, in words a model can act on."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Meta

from handrail.protocol.arguments import ALIASES
from handrail.protocol.errors import ToolError
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire, encode
from handrail.runtime.registry import parse_arguments
from handrail.tools.exec.spec import EXEC
from handrail.tools.grep import GREP
from handrail.tools.ls import LS
from handrail.tools.read import READ
from handrail.tools.write import WRITE


class Edit(Arguments, frozen=True):
    """A part of an argument."""

    old_text: str
    occurrence: Literal["unique", "first", "all"] = "unique"


class MadeUpArguments(Arguments, frozen=True):
    """One argument of every sort."""

    file_path: str = ""
    action: Literal["list", "poll"] = "list"
    edits: tuple[Edit, ...] = ()
    pair: tuple[int, int] = (0, 0)
    names: Annotated[tuple[str, ...], Meta(max_length=2)] = ()
    ports: dict[str, int] = msgspec.field(default_factory=dict)
    share: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    step: Annotated[int, Meta(multiple_of=5)] = 5
    word: Annotated[str, Meta(min_length=2, max_length=4, pattern="^[a-z]+$")] = "ab"
    either: int | str | None = None
    whatever: Any = None


class Span(Arguments, frozen=True):
    """Arguments that are checked as a whole too."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if self.first > self.last:
            raise ValueError("first must not be behind last")


class Tree(Arguments, frozen=True):
    """Holds its like."""

    children: tuple["Tree", ...] = ()


class TreeArguments(Arguments, frozen=True):
    """Has room for anything that is deep."""

    tree: Tree


class Nothing(Wire, frozen=True):
    """No data."""


def spec(arguments: type[msgspec.Struct], **more: Any) -> ToolSpec:
    return ToolSpec(name="made_up", title="Made up", description="", arguments=arguments, data=Nothing, **more)


MADE_UP = spec(MadeUpArguments)


def refusal(of: ToolSpec, arguments: object) -> ToolError:
    with pytest.raises(ToolError) as caught:
        parse_arguments(of, arguments)
    assert caught.value.code == "INVALID_ARGUMENT"
    return caught.value


def test_right_arguments_become_typed_ones() -> None:
    arguments: Any = parse_arguments(READ, {"path": "a.py", "limit": 5})
    assert (arguments.path, arguments.offset, arguments.limit) == ("a.py", 1, 5)


@pytest.mark.parametrize(
    ("of", "arguments", "message"),
    [
        (READ, {"file_path": "a", "limit": 0},
         "file_path is not an argument; use path. limit must be 1 or more, got 0"),
        (READ, {}, "path is required"),
        (READ, {"path": "a", "limit": 10_001}, "limit must be 10000 or less, got 10001"),
        (READ, {"path": "a", "limit": "5"}, "limit must be an integer, got '5'"),
        (READ, {"path": "a", "limit": True}, "limit must be an integer, got true"),
        (READ, {"path": "a", "limit": 1.5}, "limit must be an integer, got 1.5"),
        (READ, {"path": "a", "limit": None}, "limit must be an integer, got null"),
        (READ, {"path": None}, "path must be a string, got null"),
        (READ, {"path": ["a"]}, "path must be a string, got ['a']"),
        (READ, {"path": b"a"}, "path must be a string, got <bytes>"),
        (READ, {"path": object()}, "path must be a string, got <object>"),
        (READ, {"path": "a", "encoding": "x"}, "encoding is not an argument; the arguments are path, offset, limit"),
        (READ, {"path": "a", "file": "b"}, "file is not an argument; the arguments are path, offset, limit"),
        (READ, {"path": "a", "start_line": 3, "max_lines": 4},
         "start_line is not an argument; use offset. max_lines is not an argument; use limit"),
        (READ, {"PATH": "a"}, "PATH is not an argument; use path"),
        (READ, {"path": "a", 7: 1}, "7 is not an argument; the arguments are path, offset, limit"),
        (READ, {"path": "a", None: 1}, "null is not an argument; the arguments are path, offset, limit"),
        (READ, {"path": "a", (1, "b"): 1}, "(1, 'b') is not an argument; the arguments are path, offset, limit"),
        (READ, {"path": "a", "two words": 1}, "'two words' is not an argument; the arguments are path, offset, limit"),
        (READ, {"path": "a", "x\n\u202e": 1},
         "'x\\n\\u202e' is not an argument; the arguments are path, offset, limit"),
        (READ, {"path": "a", "\ud800": 1}, "'\\ud800' is not an argument; the arguments are path, offset, limit"),
        (READ, None, "arguments must be an object, got null"),
        (READ, [], "arguments must be an object, got []"),
        (READ, "path", "arguments must be an object, got 'path'"),
        (READ, 3, "arguments must be an object, got 3"),
        (READ, {"path": 10**5000}, "path must be a string, got <too large>"),
        (WRITE, {"path": "a", "contents": "b"}, "contents is not an argument; use content"),
        (WRITE, {"file": "a", "text": 3}, "file is not an argument; use path. text is not an argument; use content"),
        (LS, {"directory": ".", "max_depth": 2},
         "directory is not an argument; use path. max_depth is not an argument; use depth"),
        (LS, {"path": ".", "depth": 21}, "depth must be 20 or less, got 21"),
        (MADE_UP, {"file_path": "a"}, "file_path is not an argument; use filePath"),
        (MADE_UP, {"action": "kill"}, "action must be one of list, poll, got 'kill'"),
        (MADE_UP, {"action": "\ud800"}, "action holds text that is not valid Unicode"),
        (MADE_UP, {"edits": "x"}, "edits must be a list, got 'x'"),
        (MADE_UP, {"edits": [{"oldText": "a"}, {"oldText": 3}]}, "edits[1].oldText must be a string, got 3"),
        (MADE_UP, {"edits": [{"oldText": "a", "occurrence": "last"}]},
         "edits[0].occurrence must be one of unique, first, all, got 'last'"),
        (MADE_UP, {"edits": [{}]}, "edits[0] must have oldText, got {}"),
        (MADE_UP, {"edits": [{"oldText": "a", "old": 1}]},
         "edits[0].old is not an argument; the arguments are oldText, occurrence"),
        (MADE_UP, {"edits": [{"oldText": "a"}, {"old_text": "b"}]},
         "edits[1].old_text is not an argument; use oldText"),
        (MADE_UP, {"pair": [1]}, "pair must be a list of exactly 2, got [1]"),
        (MADE_UP, {"names": ["a", "b", "c"]}, "names must be a list of at most 2, got ['a', 'b', 'c']"),
        (MADE_UP, {"names": ["a", None]}, "names[1] must be a string, got null"),
        (MADE_UP, {"ports": {"web": "x"}}, "ports[...] must be an integer, got {'web': 'x'}"),
        (MADE_UP, {"ports": {1: 2}}, "a key of ports must be a string, got {1: 2}"),
        (MADE_UP, {"share": 1.0}, "share must be less than 1.0, got 1.0"),
        (MADE_UP, {"share": 0}, "share must be more than 0.0, got 0"),
        (MADE_UP, {"step": 7}, "step must be a multiple of 5, got 7"),
        (MADE_UP, {"word": "a"}, "word must be at least 2 characters long, got 'a'"),
        (MADE_UP, {"word": "abcde"}, "word must be at most 4 characters long, got 'abcde'"),
        (MADE_UP, {"word": "AB"}, "word must be text that matches '^[a-z]+$', got 'AB'"),
        (MADE_UP, {"either": []}, "either must be an integer or a string or null, got []"),
        (spec(Span), {"first": 2, "last": 1}, "first must not be behind last"),
        (spec(Arguments), {"x": 1}, "x is not an argument; it takes no arguments"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_is_wrong_and_what_to_pass(of: ToolSpec, arguments: object, message: str) -> None:
    assert refusal(of, arguments).message == f"{of.name}: {message}. Nothing was run."


WITHIN_A_LINE = "leave it out, a pattern matches within one line"


@pytest.mark.parametrize(
    ("of", "arguments", "message"),
    [
        (EXEC, {"command": "x", "is_background": True}, "is_background is not an argument; use background"),
        (LS, {"target_directory": "src"}, "target_directory is not an argument; use path"),
        (GREP, {"pattern": "x", "-i": True}, "'-i' is not an argument; use caseSensitive: false"),
        (GREP, {"pattern": "x", "-C": 3}, "'-C' is not an argument; use contextLines"),
        (GREP, {"pattern": "x", "multiline": 1}, f"multiline is not an argument; {WITHIN_A_LINE}"),
    ],
)
def test_what_other_agents_pass_is_refused_with_what_to_pass_here(
    of: ToolSpec, arguments: object, message: str
) -> None:
    assert refusal(of, arguments).message == f"{of.name}: {message}. Nothing was run."


def test_the_details_list_every_problem() -> None:
    assert refusal(READ, {"file_path": "a", "limit": 0}).details == [
        {"field": "file_path", "problem": "file_path is not an argument; use path", "value": "'a'", "use": "path"},
        {"field": "limit", "problem": "limit must be 1 or more, got 0", "value": "0", "use": None},
    ]
    problems = refusal(WRITE, {"content": 1, "mode": "w"}).details
    assert [problem["field"] for problem in problems] == ["mode", "path", "content"]


@pytest.mark.parametrize(("name", "alias"), [(name, alias) for name, aliases in ALIASES.items() for alias in aliases])
def test_an_alias_is_refused_with_the_name_to_use(name: str, alias: str) -> None:
    shape = msgspec.defstruct("Shape", [(name, int)], bases=(Arguments,), frozen=True, kw_only=True)
    assert refusal(spec(shape), {alias: 1}).details == [
        {"field": alias, "problem": f"{alias} is not an argument; use {name}", "value": "1", "use": name}
    ]


def test_no_name_is_the_alias_of_two() -> None:
    aliases = [alias for aliases in ALIASES.values() for alias in aliases]
    assert len(aliases) == len(set(aliases))
    assert not set(aliases) & set(ALIASES)


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": ["x" * 1_000_000]},
        {"path": {"x" * 1_000_000: 1}},
        {"path": "a", "x" * 1_000_000: 1},
        {"path": "a", "limit": "\n" * 1_000_000},
        {"path": "a", "limit": 10**4000},
        {"path": "a", **{f"x{n}": n for n in range(10_000)}},
        "x" * 1_000_000,
        [[[[[[[[[[[[1]]]]]]]]]]]],
    ],
)
def test_a_huge_value_makes_no_huge_message(arguments: object) -> None:
    error = refusal(READ, arguments)
    assert len(error.message) < 3_000
    assert len(encode(error.details)) < 6_000


def test_what_is_not_told_is_counted() -> None:
    message = refusal(READ, {"path": "a", **{f"x{n}": n for n in range(50)}}).message
    assert "x19 is not an argument" in message
    assert "x20" not in message
    assert message.endswith(". 30 more names are not arguments. Nothing was run.")


def test_a_tool_may_word_the_problems_its_own_way() -> None:
    own = spec(MadeUpArguments, format_error=lambda problems: f"{len(problems)}: {problems[0]}!")
    assert refusal(own, {"step": 1, "word": "a"}).message == "2: step must be a multiple of 5, got 1!"


def test_a_remark_beside_a_type_is_nothing_to_stumble_over() -> None:
    shape = msgspec.defstruct("Shape", [("count", Annotated[int, ["of what"]])], bases=(Arguments,), frozen=True)
    assert "count must be an integer, got 'x'" in refusal(spec(shape), {"count": "x"}).message


def test_nesting_without_end_is_refused_in_words() -> None:
    ring: dict[str, Any] = {}
    ring["children"] = [ring]
    assert (
        refusal(spec(TreeArguments), {"tree": ring}).message == "made_up: tree is nested too deeply. Nothing was run."
    )


odd_text = st.text(st.characters(exclude_categories=[]), max_size=12)
names = st.sampled_from([*(field.encode_name for field in msgspec.structs.fields(MadeUpArguments)), "path", "limit"])
keys = names | odd_text | st.integers() | st.none() | st.booleans() | st.floats() | st.tuples(st.integers())
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | odd_text | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys | st.sampled_from(["oldText"]), inner, max_size=4),
    max_leaves=12,
)


@given(
    of=st.sampled_from([READ, WRITE, LS, MADE_UP]), arguments=values | st.dictionaries(names | keys, values, max_size=6)
)
@example(of=READ, arguments={"\ud800": "\ud800"})
@example(of=MADE_UP, arguments={"action": "\udfff", "edits": [{"\ud800": 1}], "ports": {"\ud800": "x"}})
def test_any_arguments_give_typed_ones_or_a_refusal_that_can_be_read(of: ToolSpec, arguments: object) -> None:
    outcome = typed_or_refused(of, arguments)
    if not isinstance(outcome, ToolError):
        assert isinstance(outcome, of.arguments)
        return
    assert outcome.code == "INVALID_ARGUMENT"
    assert outcome.message.isprintable()
    assert outcome.message.encode("utf-8")
    assert outcome.message.startswith(f"{of.name}: ")
    assert outcome.details
    assert encode(outcome.details)


def typed_or_refused(of: ToolSpec, arguments: object) -> msgspec.Struct | ToolError:
    try:
        return parse_arguments(of, arguments)
    except ToolError as error:
        return error
