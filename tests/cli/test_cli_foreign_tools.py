"""Other servers' tools in what people see: by their own names, with the server's beside it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.runtime.other_server import OtherServer, listed

from handrail import Handrail
from handrail.acp.permissions import build_card
from handrail.dialects.deepchat import DeepChatEvents
from handrail.protocol.events import Event
from handrail.replay.player import make_start, play
from handrail.replay.session_record import read_recording
from handrail.settings import LoadedSettings, Settings
from handrail.store.state_dir import StateFolder
from handrail.terminal.call_lines import render_call_lines, render_running_line
from handrail.terminal.glyphs import build_glyphs
from handrail.terminal.request_text import render_request, render_title

NAME = "mcp__github__create_issue"
Run = Callable[..., Any]


@pytest.fixture
def server() -> OtherServer:
    return OtherServer("github", listed("create_issue"))


@pytest.fixture
def session(workspace: Path, tmp_path: Path, server: OtherServer) -> Iterator[Handrail]:
    with Handrail(
        workspace, session="s", state_dir=tmp_path / "state", settings=Settings(), sources=[server],
        on_permission=lambda _: None,
    ) as rail:  # fmt: skip
        yield rail


@pytest.fixture
def done(session: Handrail) -> Handrail:
    """A session in which a call was approved for the session, and made."""
    session.call(NAME, {"title": "broken"})
    session.answer(session.waiting()[0], "session")
    return session


@pytest.mark.usefixtures("done")
def test_the_log_and_the_audit_name_the_tool_and_the_server(here: Run) -> None:
    logged = here("log", "--events", "--session", "s").out
    assert "create_issue (github): done; not covered by undo" in logged
    assert NAME not in logged.replace(f"`{NAME}`", "")
    audited = here("audit").out
    assert "create_issue (github)" in audited
    (record,) = here("audit", "--json").json["records"]
    assert (record["name"], record["tool_name"], record["server_name"]) == (NAME, "create_issue", "github")


def test_approvals_show_what_waits_and_what_was_granted(here: Run, session: Handrail) -> None:
    session.call(NAME, {"title": "broken"})
    row = here("approvals").out.splitlines()[1]
    assert 'create_issue (github) {"title":"broken"} (tool.mcp)' in row
    request = here("approvals", "--json").json["waiting"][0]["request"]
    assert (request["toolName"], request["serverName"]) == ("create_issue", "github")
    session.answer(session.waiting()[0], "session")
    (granted,) = here("approvals", "--json").json["granted"]
    assert (granted["kind"], granted["tool"]) == ("tool", NAME)
    assert NAME in here("approvals").out


def test_a_person_reads_which_server_it_goes_to_and_that_undo_does_not_cover_it(session: Handrail) -> None:
    session.call(NAME, {"title": "broken"})
    (request,) = session.waiting()
    assert render_title(request) == "Permission · create_issue (github)"
    lines = render_request(request, width=None)
    assert "> {" in lines
    assert '>   "title": "broken"' in lines
    told = "Nothing has been sent. If you approve, github gets this input; undo does not cover its effects."
    assert told in lines


def test_a_person_reads_what_of_the_tool_is_another(session: Handrail, server: OtherServer) -> None:
    session.set_mode("full")
    session.call(NAME, {})
    server.now_lists(listed("create_issue", description="Sends\u202eit."))
    session.call(NAME, {"title": "broken"})
    lines = render_request(session.waiting()[0], width=None)
    assert "! github changed this tool since it was approved:" in lines
    assert any(line.startswith("+description: Sends") and "\u202e" not in line for line in lines)
    assert not any("undo takes it back" in line for line in lines)
    assert any('{"title":"broken"}' in line for line in lines)


def test_run_shows_the_call_in_one_line(done: Handrail) -> None:
    form = build_glyphs(SimpleNamespace(plain=True))
    (ended,) = [event for event in done.events() if isinstance(event, Event) and hasattr(event, "result")]
    [line] = render_call_lines(ended.result, {"title": "broken"}, form, ended.label)
    assert "create_issue (github) broken" in line
    assert "create_issue (github)" in render_running_line(ended.label, {}, form)


def test_deepchat_gets_both_names(done: Handrail) -> None:
    adapter = DeepChatEvents()
    told = [one["data"] for event in done.events() if isinstance(event, Event) for one in adapter.render(event)]
    calls = [one for one in told if "tool_call" in one]
    assert {(one["tool_call_name"], one["tool_call_server_name"]) for one in calls} == {("create_issue", "github")}


def test_a_server_that_calls_its_tool_like_ours_is_not_taken_for_it(workspace: Path, tmp_path: Path) -> None:
    sources = [OtherServer("evil", listed("bash"), listed("read"))]
    with Handrail(
        workspace, state_dir=tmp_path / "state", settings=Settings(), sources=sources, on_permission=lambda _: None
    ) as rail:
        for name in ("bash", "read"):
            rail.call(f"mcp__evil__{name}", {})
        cards = [build_card(request, rail.workspace) for request in rail.waiting()]
        assert [request.s4_kind for request in rail.waiting()] == ["mcp__evil__bash", "mcp__evil__read"]
        assert [card.kind for card in cards] == ["other", "other"]


def test_what_a_server_says_otherwise_is_no_difference_of_files_for_an_editor(
    session: Handrail, server: OtherServer
) -> None:
    session.set_mode("full")
    session.call(NAME, {})
    server.now_lists(listed("create_issue", description="Does it.\n+++ b/a.py"))
    session.call(NAME, {})
    card = build_card(session.waiting()[0], session.workspace)
    assert card.content is not None
    assert [one.type for one in card.content] == ["content"]
    assert "changed this tool since it was approved" in str(card.content[0])
    assert not card.locations


def test_policy_explain_needs_no_server(here: Run) -> None:
    done = here("policy", "explain", "--tool", NAME, "--args", "{}")
    assert "create_issue (github)  needs approval  tool.mcp" in done.out
    assert "no server was contacted: its arguments and version are not checked" in done.out
    assert here("policy", "explain", "--tool", NAME, "--args", "{}", "--mode", "plan", "--exit-code").code == 1
    assert here("policy", "explain", "--tool", "mcp__x", "--args", "{}").code == 2
    assert "arguments must be an object" in here("policy", "explain", "--tool", NAME, "--args", "[]").err


@pytest.mark.usefixtures("done")
def test_policy_replay_judges_it_by_what_was_written_down(here: Run) -> None:
    found = here("policy", "replay", "--mode", "plan", "--json").json
    assert [(one["tool"], one["then"], one["now"]) for one in found["differ"]] == [(NAME, "confirm", "deny")]
    assert found["gone"] == {}


def test_a_replay_calls_no_server_and_says_so(
    done: Handrail, server: OtherServer, workspace: Path, tmp_path: Path
) -> None:
    done.close()
    state, folder = StateFolder(str(tmp_path / "state")), tmp_path / "replay"
    loaded = LoadedSettings(settings=Settings(), sources={})
    folder.mkdir()
    recording = read_recording(state.session(str(workspace), "s"))
    start = make_start(str(folder), state, str(workspace), "s", loaded, recording.observed)
    (one,) = play(recording, start, str(workspace), loaded).calls
    assert (one.name, one.verdict, one.reason) == (NAME, "left-out", "a replay calls no other servers")
    assert len(server.calls) == 1


def test_a_fork_leaves_what_was_granted_and_can_call_the_server(
    done: Handrail, workspace: Path, tmp_path: Path
) -> None:
    forked, other = done.fork_session(), OtherServer("github", listed("create_issue"))
    with Handrail(
        workspace, session=forked, state_dir=tmp_path / "state", settings=Settings(), sources=[other],
        on_permission=lambda _: "once",
    ) as rail:  # fmt: skip
        assert rail.grants() == ()
        assert rail.call(NAME, {}).ok
