"""The notation of a table of foreign tools."""

from typing import Any

import msgspec
import pytest

from handrail.dialects.dialect import Code, DialectTool, Shown
from handrail.dialects.table import build_struct, list_renamed, parse_tools
from handrail.protocol.errors import ToolError

TABLE = """
Folder:
  workdir str=. -> cwd                # The folder.
Edit:
  old* str -> oldText
  mode any|one:unique=any -> occurrence
run = exec background=false +Folder: Runs a command, such as `a: b`.
  cmd* str len>=1 len<=9 -> command   # The command = text.
  wait number=50 >=0 -> timeoutMs[100..200]
  tags str[]=[]
  -i bool -> !caseSensitive
  from int >0 <=9 -> offset+1
  file str -> paths[]
  edits Edit[] -> edits
  any object
off = !: it cannot be offered
  x* str
"""
[RUN, OFF] = parse_tools(TABLE)


def build_args(**given: Any) -> Any:
    return msgspec.convert(given, build_struct("run", RUN.params or {}))


def translate(tool: DialectTool, **given: Any) -> Any:
    return translate_args(tool, build_args(**given), given)


def translate_args(tool: DialectTool, args: Any, given: dict[str, Any]) -> Any:
    surface: Any = None
    return tool.translate(args, given, surface)


def test_a_tool_has_its_name_description_and_canonical_tools() -> None:
    assert (RUN.name, RUN.about, RUN.to) == ("run", "Runs a command, such as `a: b`.", ("exec",))
    assert (OFF.name, OFF.lacks, OFF.to) == ("off", "it cannot be offered", ())
    assert list(RUN.params or ()) == ["workdir", "cmd", "wait", "tags", "-i", "from", "file", "edits", "any"]


def test_constants_and_given_parameters_become_canonical_arguments() -> None:
    assert translate(RUN, cmd="ls") == (
        "exec",
        {"background": False, "cwd": ".", "command": "ls", "timeoutMs": 100},
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"wait": 150.7}, {"timeoutMs": 150}),
        ({"wait": 999}, {"timeoutMs": 200}),
        ({"-i": True}, {"caseSensitive": False}),
        ({"from": 3}, {"offset": 4}),
        ({"file": "a"}, {"paths": ["a"]}),
        ({"edits": [{"old": "a", "mode": "one"}]}, {"edits": [{"oldText": "a", "occurrence": "unique"}]}),
    ],
)
def test_a_target_says_what_becomes_of_a_value(given: dict[str, Any], expected: dict[str, Any]) -> None:
    _, args = translate(RUN, cmd="ls", **given)
    assert {name: args[name] for name in expected} == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"cmd": ""},
        {"cmd": "0123456789"},
        {"cmd": "ls", "from": 0},
        {"cmd": "ls", "from": 10},
        {"cmd": "ls", "wait": -1},
        {"cmd": "ls", "wait": None},
        {"cmd": "ls", "edits": [{"old": "a", "mode": "both"}]},
        {"cmd": "ls", "other": 1},
    ],
)
def test_limits_and_kinds_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        build_args(**wrong)


def test_a_parameter_without_a_default_may_be_null() -> None:
    assert build_args(cmd="ls", file=None, any={"k": [1]}).any == {"k": [1]}


def test_a_parameter_that_is_refused_says_why_and_one_with_its_default_is_not_given() -> None:
    [tool] = parse_tools(
        "t = exec: T.\n  tty bool=false   # Refused: there is no terminal\n  cmd* str -> command   # C.\n"
    )
    args = build_struct("t", tool.params or {})(cmd="a")
    assert translate_args(tool, args, {"cmd": "a", "tty": False}) == ("exec", {"command": "a"})
    with pytest.raises(ToolError, match=r"^tty: there is no terminal\. Nothing was run\.$") as refused:
        translate_args(tool, args, {"cmd": "a", "tty": True})
    assert refused.value.code == "UNAVAILABLE"


@pytest.mark.parametrize(
    ("given", "path"), [({"old": "a"}, "a"), ({"name": "b"}, "b"), ({"old": "a", "name": "b"}, "b")]
)
def test_of_two_parameters_for_one_the_later_row_counts(given: dict[str, str], path: str) -> None:
    [tool] = parse_tools("t = read: T.\n  old str -> path   # The older name.\n  name str -> path   # The file.\n")
    args = msgspec.convert(given, build_struct("t", tool.params or {}))
    assert translate_args(tool, args, given) == ("read", {"path": path})
    assert list_renamed(tool.params or {}) == {"path": "name"}


def test_messages_name_the_parameters_of_the_dialect_also_in_records() -> None:
    names = list_renamed(RUN.params or {})
    assert {name: names[name] for name in ("cwd", "oldText", "timeoutMs")} == {
        "cwd": "workdir",
        "oldText": "old",
        "timeoutMs": "wait",
    }


def test_a_description_may_have_any_signs() -> None:
    schema = msgspec.json.schema(build_struct("run", RUN.params or {}))["$defs"]["run"]
    assert schema["properties"]["cmd"]["description"] == "The command = text."


def test_the_answer_of_the_table_gives_way_to_that_of_code() -> None:
    table = """
    show = read: Shows.
      x str
      title: Read {call_id}
      text: {given}!
      data: id=call_id, kind="file", none=None,
        yes=True, size=len(given)
    """.replace("\n    ", "\n")
    answered: Any = msgspec.defstruct("answered", ["call_id", "given"])(call_id="c1", given="g")
    plain, own = (
        parse_tools(table, code)[0].code.show for code in (None, {"show": Code(show=lambda _: Shown({"id": 2}, "T"))})
    )
    assert plain is not None
    assert own is not None
    data = {"id": "c1", "kind": "file", "none": None, "yes": True, "size": 1}
    assert plain(answered) == Shown(data, "Read c1", "g!")
    assert own(answered) == Shown(data | {"id": 2}, "T", "g!")


@pytest.mark.parametrize("row", ["x* str -> a-b", "x*str", "x* str len=3"])
def test_a_row_that_cannot_be_read_is_a_defect(row: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        parse_tools(f"t = read: T.\n  {row}\n")
