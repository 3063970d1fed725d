"""How many tools of other servers a session offers: as many as a provider takes, and none that the settings name."""

from collections.abc import Callable
from typing import Any

import pytest
from other_server import OtherServer, listed

from handrail import Handrail, UsageError
from handrail.protocol.events import Warning as WarningEvent
from handrail.runtime.foreign.catalog import list_foreign_specs
from handrail.runtime.foreign.source import ToolSource
from handrail.settings import Settings
from handrail.settings.mcp_json import ConfiguredServer
from handrail.settings.mcp_servers import ServerTable
from handrail.settings.model import Tools

Open = Callable[..., Handrail]


def many(count: int, prefix: str = "t", **more: Any) -> list[Any]:
    return [listed(f"{prefix}{number}", **more) for number in range(count)]


def offered(rail: Handrail, server: str) -> list[str]:
    return [spec.own_name for spec in rail.specs() if spec.server == server]


def warned(rail: Handrail) -> list[str]:
    return [event.text for event in rail.events() if isinstance(event, WarningEvent)]


def test_of_very_many_tools_as_many_are_offered_as_every_provider_takes(rail: Open) -> None:
    one = rail(mode="full", sources=[OtherServer("a", *many(200))])
    assert len(offered(one, "a")) == 100
    assert len(one.specs()) <= 128
    (text,) = warned(one)
    assert text.startswith("100 of the tools of a are not offered: other servers' tools may be 100, and")
    assert '[tools] disable removes tools ("mcp__a", "mcp__a__get_*")' in text
    error = one.call("mcp__a__t150", {}).error
    assert error is not None
    assert error.message.endswith("(there are too many tools of other servers)")


def test_a_server_with_very_much_to_say_takes_no_room_of_another(rail: Open) -> None:
    long = {"type": "object", "properties": {"a": {"description": "x" * 60_000}}}
    one = rail(sources=[OtherServer("a", *many(30, input_schema=long)), OtherServer("b", *many(20))])
    assert len(offered(one, "a")) == 6
    assert len(offered(one, "b")) == 20


def test_servers_take_turns(rail: Open) -> None:
    one = rail(sources=[OtherServer("a", *many(200)), OtherServer("b", *many(30)), OtherServer("c", *many(60))])
    assert [len(offered(one, server)) for server in "abc"] == [35, 30, 35]
    assert offered(one, "a")[:2] == ["t0", "t1"]


@pytest.mark.parametrize("names", [["mcp__a"], ["mcp__a__*"], ["MCP__A__t*"], ["mcp__a__t0", "mcp__a__t[1-9]*"]])
def test_settings_take_tools_away_by_a_glob_or_all_of_a_server(rail: Open, names: list[str]) -> None:
    settings = Settings(tools=Tools(disable=tuple(names)))
    one = rail(sources=[OtherServer("a", *many(150)), OtherServer("b", *many(50))], settings=settings)
    assert offered(one, "a") == []
    assert len(offered(one, "b")) == 50  # and what is not offered takes no room
    assert warned(one) == []
    assert one.why_off("mcp__a__t0") == "mcp__a__t0 is off: [tools] disable names it."
    error = one.call("mcp__a__t0", {}).error
    assert error is not None
    assert (error.code, error.message) == ("UNKNOWN_TOOL", "Unknown Agent tool: mcp__a__t0 (it is off)")


def test_what_is_taken_away_of_one_server_is_that_alone(rail: Open) -> None:
    settings = Settings(tools=Tools(disable=("mcp__a__get_*", "mcp__ab", "*")))
    servers = [OtherServer("a", listed("get_x"), listed("set_x")), OtherServer("ab", listed("x"))]
    one = rail(sources=servers, settings=settings)
    assert offered(one, "a") == ["set_x"]
    assert offered(one, "ab") == []
    assert "read" in [spec.name for spec in one.specs()]


def test_what_is_denied_takes_away_the_tools_of_servers_that_could_do_it(rail: Open) -> None:
    network, writer = OtherServer("network", listed("x")), OtherServer("writer", listed("x"))
    network.reach, writer.reach = ("net.connect",), ("fs.read", "fs.write")
    one = rail(sources=[network, writer, OtherServer("a", listed("x"))], deny=["net.connect", "fs.delete"])
    assert [offered(one, server) for server in ("network", "writer", "a")] == [[], ["x"], ["x"]]
    why = "mcp__network__x is off: it needs net.connect, which is denied here ([tools] deny)."
    assert one.why_off("mcp__network__x") == why


@pytest.mark.parametrize(
    ("server", "reach"),
    [
        ({"words": ("a",)}, {"fs.read"}),
        ({"words": ("a",), "network": ("b:443",)}, {"fs.read", "net.connect"}),
        ({"words": ("a",), "writable": True}, {"fs.read", "fs.write", "fs.delete", "git.write"}),
        ({"url": "https://a"}, {"net.connect"}),
    ],
)
def test_what_a_server_could_do_is_what_its_settings_open(server: dict[str, Any], reach: set[str]) -> None:
    assert set(ConfiguredServer(name="a", table=ServerTable(), **server).reach) == reach


def test_no_server_ends_a_session_by_a_name_that_is_like_one_in_the_settings(rail: Open) -> None:
    settings = Settings(tools=Tools(disable=("mcp_a_erase",), enable=("mcp-a-erase",)))
    one = rail(sources=[OtherServer("a", listed("erase"))], settings=settings)
    assert offered(one, "a") == ["erase"]


def test_who_only_asks_what_there_is_hears_the_same() -> None:
    sources: list[ToolSource] = [OtherServer("a", *many(200)), OtherServer("b", listed("x"))]
    specs = list_foreign_specs(sources, (), ("mcp__b",))
    assert {spec.server for spec in specs} == {"a"}
    assert len(specs) == 100


def test_a_disable_that_no_tool_of_a_server_matches_is_on_the_record(rail: Open) -> None:
    names = ("mcp__a__delete_isue", "mcp__a__get_*", "mcp__b", "mcp__calendar__book")
    server = OtherServer("a", listed("delete_issue"), listed("get_issue"))
    one = rail(settings=Settings(tools=Tools(disable=names)), sources=[server, OtherServer("b", listed("x"))])
    assert offered(one, "a") == ["delete_issue"]
    assert offered(one, "b") == []
    assert warned(one) == [
        "[tools] disable: no server lists a tool 'mcp__a__delete_isue', so nothing was disabled. "
        "Did you mean mcp__a__delete_issue?",
        "[tools] disable: no server lists a tool 'mcp__calendar__book', so nothing was disabled.",
    ]


def test_a_disable_may_be_for_a_server_that_is_not_there_yet(rail: Open) -> None:
    server, late = OtherServer("a", listed("x")), OtherServer("b")
    one = rail(settings=Settings(tools=Tools(disable=("mcp__b__x",))), sources=[server, late])
    assert offered(one, "b") == []
    late.now_lists(listed("x"), listed("y"))
    assert offered(one, "b") == ["y"]
    assert warned(one) == []


@pytest.mark.parametrize("name", ["handrail", "Handrail"])
def test_no_source_is_called_as_handrail_itself(rail: Open, name: str) -> None:
    with pytest.raises(UsageError, match="its tools would be shown as ours"):
        rail(sources=[OtherServer(name, listed("read"))])


class Unbounded(OtherServer):
    """A source that does not say what its server can do."""

    def __init__(self) -> None:
        super().__init__("open", listed("x"))
        del self.reach


class _Half:
    server = "half"

    def listed(self) -> tuple[()]:
        return ()


@pytest.mark.parametrize(
    ("source", "missing"),
    [("abc", "server"), (3, "server"), (OtherServer, "server"), (_Half(), "call()"), (Unbounded(), "reach")],
)
def test_what_is_no_source_is_refused_by_name(rail: Open, source: Any, missing: str) -> None:
    sound = OtherServer("a", listed("x"))
    with pytest.raises(UsageError, match=rf"is not a source of tools: it has no {missing[:4]}"):
        rail(sources=[sound, source])
    assert sound.closed == 1


def test_a_source_that_claims_a_permission_that_there_is_not_is_refused(rail: Open) -> None:
    """Else `[tools] deny` would let its tools through."""
    server = OtherServer("a", listed("x"))
    server.reach = ("net.conect",)
    with pytest.raises(UsageError, match=r"the source a .* 'net\.conect'.* net\.connect"):
        rail(sources=[server])
