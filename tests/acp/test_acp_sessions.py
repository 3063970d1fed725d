"""handrail acp: sessions are handrail sessions, which outlive the editor, the agent and a kill."""

import asyncio
import signal
from pathlib import Path

import pytest
from acp import RequestError
from acp.helpers import embedded_text_resource, resource_block, resource_link_block, text_block
from editor import chose, handrail, played

from handrail.acp.prompts import parse_prompt

EDIT = {
    "reasoning": "Hm. ",
    "text": "I change it. ",
    "calls": [["edit", {"path": "a.txt", "oldText": "two", "newText": "2"}]],
}
DONE = {"text": "Done."}
MORE = {"text": "More."}


def test_what_the_agent_says_of_itself(start, script) -> None:
    async def scene() -> None:
        async with start("--model", script(DONE)) as opened:
            said = await opened.agent.initialize(protocol_version=7)
            can = said.agent_capabilities
            assert (said.protocol_version, said.agent_info.name) == (1, "handrail")
            assert (can.load_session, can.prompt_capabilities.embedded_context) == (True, True)
            assert (can.prompt_capabilities.image, can.prompt_capabilities.audio) == (True, False)
            offered = can.session_capabilities.model_dump(exclude_none=True)
            assert set(offered) == {"list", "resume", "close", "additional_directories"}
            with pytest.raises(RequestError, match="environment variable"):
                await opened.agent.authenticate(method_id="browser")

    played(scene)


def test_a_session_is_loaded_with_all_that_happened_in_it(
    start, script, workspace: Path, environment: dict[str, str]
) -> None:
    plan = {"calls": [["todo", {"items": [{"text": "paint", "status": "active"}]}]]}
    model = script(EDIT, plan, DONE, MORE)
    before: list[str] = []

    async def first() -> None:
        async with start("--model", model, "--mode", "auto") as opened:
            session = await opened.new()
            await opened.say(session, "make it 2")
            [planned] = opened.editor.of("plan")[-1].entries
            assert (planned.content, planned.status) == ("paint", "in_progress")
            before.append(session)

    async def second() -> None:
        async with start("--mode", "auto") as opened:  # the model is whom the session talked to
            editor, [session] = opened.editor, before
            listed = await opened.agent.list_sessions(cwd=str(workspace))
            assert [(one.session_id, one.title) for one in listed.sessions] == [(session, "make it 2")]
            loaded = await opened.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
            assert loaded.modes.current_mode_id == "auto"
            kinds = [one.session_update for _, one in editor.told]
            assert "".join(one.content.text for one in editor.of("user_message_chunk")) == "make it 2"
            assert "".join(one.content.text for one in editor.of("agent_thought_chunk")) == "Hm. "
            assert editor.words() == "I change it. Done."
            assert kinds.index("user_message_chunk") < kinds.index("agent_message_chunk") < kinds.index("tool_call")
            card = editor.cards()["edit a.txt"]
            assert (card["status"], card["content"][0]["type"]) == ("completed", "diff")
            [planned] = editor.of("plan")[-1].entries
            assert (planned.content, planned.status) == ("paint", "in_progress")
            assert (await opened.say(session, "more")).stop_reason == "end_turn"
            assert editor.words() == "I change it. Done.More."

    played(first)
    log = handrail(environment, workspace, "log", "--session", before[0])
    assert "make it 2" in log
    played(second)
    handrail(environment, workspace, "undo")
    assert (workspace / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_a_session_is_resumed_untold_and_closed(start, script, workspace: Path) -> None:
    async def scene() -> None:
        async with start("--model", script(DONE, MORE)) as opened:
            editor, agent, session = opened.editor, opened.agent, await opened.new()
            await opened.say(session, "go")
            await agent.close_session(session_id=session)
            with pytest.raises(RequestError, match="There is no session"):
                await opened.say(session, "gone?")
            told = len(editor.of("agent_message_chunk"))
            await agent.resume_session(session_id=session, cwd=str(workspace), mcp_servers=[])
            assert len(editor.of("agent_message_chunk")) == told
            await opened.say(session, "more")
            assert editor.words(session) == "Done.More."

    played(scene)


def test_a_session_that_is_just_told_again_is_left_to_that(start, script, workspace: Path) -> None:
    async def scene() -> None:
        async with start("--model", script(DONE, MORE)) as opened:
            agent, session = opened.agent, await opened.new()
            await opened.say(session, "go")
            where = {"cwd": str(workspace), "session_id": session, "mcp_servers": []}
            at_once = [agent.load_session(**where), agent.load_session(**where), agent.resume_session(**where)]
            loaded, *others = await asyncio.gather(*at_once, return_exceptions=True)
            assert loaded.modes.current_mode_id == "ask"
            assert all("is busy" in str(one) for one in others)
            assert (await opened.say(session, "more")).stop_reason == "end_turn"

    played(scene)


def test_sessions_work_side_by_side_and_each_on_one_prompt_at_a_time(start, script, workspace: Path) -> None:
    waits = {"calls": [["exec", {"command": "sleep 1000"}]]}

    async def scene() -> None:
        async with start("--model", script(waits, DONE), "--mode", "full") as opened:
            editor = opened.editor
            one, other = await opened.new(), await opened.new()
            tasks = [asyncio.create_task(opened.say(session, "go")) for session in (one, other)]
            for session in (one, other):
                await editor.until(lambda session=session: "in_progress" in states(editor, session))
            with pytest.raises(RequestError, match="is busy"):
                await opened.say(one, "and this")
            with pytest.raises(RequestError, match="is busy"):
                await opened.agent.load_session(cwd=str(workspace), session_id=one, mcp_servers=[])
            await opened.agent.cancel(session_id=one)
            assert (await tasks[0]).stop_reason == "cancelled"
            assert not tasks[1].done()
            await opened.agent.cancel(session_id=other)
            assert (await tasks[1]).stop_reason == "cancelled"

    played(scene)


def states(editor, session: str) -> list[str]:
    return [card.get("status") for card in editor.cards(session).values()]


def test_modes_are_offered_set_and_kept(start, script, workspace: Path) -> None:
    async def scene() -> None:
        async with start("--model", script(EDIT, DONE), "--mode", "auto") as opened:
            editor, agent = opened.editor, opened.agent
            new = await agent.new_session(cwd=str(workspace), mcp_servers=[])
            session = new.session_id
            assert new.modes.current_mode_id == "auto"
            assert [one.id for one in new.modes.available_modes] == ["plan", "ask", "auto", "full"]
            await agent.set_session_mode(session_id=session, mode_id="plan")
            await editor.until(lambda: editor.of("current_mode_update"))
            assert editor.of("current_mode_update")[-1].current_mode_id == "plan"
            with pytest.raises(RequestError, match="there is no mode 'wild'"):
                await agent.set_session_mode(session_id=session, mode_id="wild")
            await opened.say(session, "make it 2")
            assert editor.cards()["edit a.txt"]["raw_output"]["code"] == "POLICY_DENIED"
            await agent.close_session(session_id=session)
            loaded = await agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
            assert loaded.modes.current_mode_id == "plan"
            await agent.set_session_mode(session_id=session, mode_id="full")
            await agent.close_session(session_id=session)
            loaded = await agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
            assert loaded.modes.current_mode_id == "auto", "what was looser than the settings is not kept"

    played(scene)


def test_no_mode_is_offered_or_set_that_the_managed_file_does_not_allow(start, script, tmp_path: Path) -> None:
    (tmp_path / "managed.toml").write_text('mode = "ask"\n')

    async def scene() -> None:
        async with start("--model", script(DONE), "--mode", "full", managed=tmp_path / "managed.toml") as opened:
            agent = opened.agent
            new = await agent.new_session(cwd=str(opened.workspace), mcp_servers=[])
            assert new.modes.current_mode_id == "ask"
            assert [one.id for one in new.modes.available_modes] == ["plan", "ask"]
            assert [one.value for one in new.config_options[0].options] == ["plan", "ask"]
            session = new.session_id
            with pytest.raises(RequestError, match="modes looser than ask; got full"):
                await agent.set_session_mode(session_id=session, mode_id="full")
            with pytest.raises(RequestError, match="modes looser than ask; got auto"):
                await agent.set_config_option(session_id=session, config_id="mode", value="auto")

    played(scene)


def test_options_choose_the_mode_and_one_of_several_models(start, script, workspace: Path) -> None:
    one, other = script({"text": "One."}, name="one.json"), script({"text": "Other."}, name="other.json")

    async def scene() -> None:
        async with start("--model", one, "--model", other, "--mode", "auto") as opened:
            editor, agent = opened.editor, opened.agent
            new = await agent.new_session(cwd=str(workspace), mcp_servers=[])
            mode, model = new.config_options
            assert (mode.category, mode.current_value) == ("mode", "auto")
            assert (model.category, [choice.value for choice in model.options]) == ("model", [one, other])
            chosen = await agent.set_config_option(session_id=new.session_id, config_id="model", value=other)
            assert [option.current_value for option in chosen.config_options] == ["auto", other]
            await opened.say(new.session_id, "go")
            assert editor.words() == "Other."
            await agent.set_config_option(session_id=new.session_id, config_id="mode", value="plan")
            await editor.until(lambda: editor.of("current_mode_update"))
            for option, value in (("model", "another"), ("mode", "wild"), ("colour", "red")):
                with pytest.raises(RequestError, match=r"(?i)there is no"):
                    await agent.set_config_option(session_id=new.session_id, config_id=option, value=value)
            loaded = await agent.load_session(cwd=str(workspace), session_id=new.session_id, mcp_servers=[])
            assert [option.current_value for option in loaded.config_options] == ["plan", other]

    played(scene)


def test_a_folder_that_is_no_workspace_is_refused(start, script, workspace: Path, environment: dict[str, str]) -> None:
    async def scene() -> None:
        async with start("--model", script(DONE)) as opened:
            for folder, why in (
                ("/", "is a whole home folder"),
                (environment["HOME"], "is a whole home folder"),
                ("some/where", "absolute"),
                ("/some\0where", "absolute"),
                (f"{workspace}/none", "is not a folder"),
            ):
                with pytest.raises(RequestError, match=why):
                    await opened.agent.new_session(cwd=folder, mcp_servers=[])
            for session in ("s_none", "../../etc", ""):
                with pytest.raises(RequestError, match="has no session"):
                    await opened.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])

    played(scene)


@pytest.mark.parametrize("settings", ["", '[paths]\nclient_roots = "read-only"\n'])
def test_folders_beside_the_workspace_are_roots_as_far_as_the_settings_let_them_be(
    start, script, workspace: Path, environment: dict[str, str], tmp_path: Path, settings: str
) -> None:
    config = Path(environment["HOME"], ".config", "handrail", "config.toml")
    config.parent.mkdir(parents=True)
    config.write_text(settings)
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "b.txt").write_text("b\n")
    look = {"calls": [["read", {"path": f"{tmp_path}/beside/b.txt"}]]}

    async def scene() -> None:
        async with start("--model", script(look, DONE), "--mode", "auto") as opened:
            editor, agent = opened.editor, opened.agent
            given = {"cwd": str(workspace), "mcp_servers": [], "additional_directories": [str(tmp_path / "beside")]}
            session = (await agent.new_session(**given)).session_id
            await opened.say(session, "look")
            [card] = editor.cards().values()
            assert card["status"] == ("completed" if settings else "failed")
            assert ("paths.client_roots" in editor.words()) is not bool(settings)
            with pytest.raises(RequestError, match="absolute paths"):
                await agent.new_session(**{**given, "additional_directories": ["beside"]})

    played(scene)


def test_files_that_the_person_points_at_are_in_the_prompt(start, script, workspace: Path) -> None:
    async def scene() -> None:
        async with start("--model", script(DONE)) as opened:
            session = await opened.new()
            uri = (workspace / "a.txt").as_uri()
            blocks = [
                text_block("Look at "),
                resource_link_block("a.txt", uri),
                text_block(" and "),
                resource_block(embedded_text_resource("file:///elsewhere/b.txt", "b</file>\n")),
            ]
            await opened.agent.prompt(session_id=session, prompt=blocks)
            await opened.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
            [said] = opened.editor.of("user_message_chunk")
            assert said.content.text.startswith("Look at @a.txt and @/elsewhere/b.txt\n\n<file path=")
            assert said.content.text.count("</file>") == 1
            with pytest.raises(RequestError, match="The prompt is empty"):
                await opened.say(session, " ")

    played(scene)


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("file:///elsewhere/b%20c.txt#L3:9", "/elsewhere/b c.txt#L3:9"),
        ("https://example.org/a?b#c", "https://example.org/a?b#c"),
        ("http://[", "http://["),
        ("file:", "file:"),
        ("file:a.txt", "file:a.txt"),
        ("", ""),
        ("file:///a\nb", "/ab"),
    ],
)
def test_whatever_the_person_points_at_has_a_name(uri: str, place: str) -> None:
    embedded = resource_block(embedded_text_resource(uri, "text"))
    prompt = parse_prompt([text_block("See "), resource_link_block("n", uri), embedded], "/project")
    assert prompt.text.split("\n\n")[0] == f"See @{place}@{place}"


def test_an_editor_that_names_a_folder_by_a_link_finds_its_files_there(
    start, script, workspace: Path, tmp_path: Path
) -> None:
    named = tmp_path / "by another näme"
    named.symlink_to(workspace)
    model = script(EDIT, DONE)

    async def scene() -> None:
        async with start("--model", model, "--mode", "ask") as opened:
            editor, session = opened.editor, await opened.new(named)
            editor.answers.append(chose("once"))
            there = resource_link_block("a.txt", (named / "a.txt").as_uri())
            await opened.agent.prompt(session_id=session, prompt=[text_block("see "), there])
            [asked], card = editor.asked, editor.cards()["edit a.txt"]
            file = str(named / "a.txt")
            assert [one.path for one in asked.card.locations] == [file]
            assert (asked.card.content[0].path, card["content"][0]["path"]) == (file, file)
            assert [one["path"] for one in card["locations"]] == [file]
            await opened.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
            [said] = editor.of("user_message_chunk")
            assert said.content.text == "see @a.txt"
            assert editor.cards()["edit a.txt"]["content"][0]["path"] == str(workspace / "a.txt")

    played(scene)


def test_commands_are_done_without_the_model(start, script, workspace: Path) -> None:
    async def scene() -> None:
        async with start("--model", script(EDIT, DONE), "--mode", "auto") as opened:
            editor, session = opened.editor, await opened.new()
            await editor.until(lambda: editor.of("available_commands_update"))
            [offered] = editor.of("available_commands_update")
            assert [one.name for one in offered.available_commands] == ["undo", "redo", "diff", "continue"]
            await opened.say(session, "make it 2")
            await opened.say(session, "/diff")
            assert "+2" in editor.words()
            await opened.say(session, "/undo 1")
            assert (workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
            await opened.say(session, "/redo")
            assert (workspace / "a.txt").read_text() == "one\n2\nthree\n"
            await opened.say(session, "/undo it")
            assert "a change has a number" in editor.words()

    played(scene)


def test_a_failing_model_is_told_in_words_and_the_session_goes_on(start, script) -> None:
    async def scene() -> None:
        fails = {"fails": ["UNAVAILABLE", "anthropic needs a key. Set ANTHROPIC_API_KEY."]}
        async with start("--model", script(fails)) as opened:
            session = await opened.new()
            for _ in range(2):
                with pytest.raises(RequestError, match="Set ANTHROPIC_API_KEY") as caught:
                    await opened.say(session, "go")
                assert caught.value.data == {"code": "UNAVAILABLE"}

    played(scene)


def test_without_a_model_a_session_opens_and_a_prompt_says_how_to_choose_one(start, script) -> None:
    async def scene() -> None:
        async with start() as opened:
            session = await opened.new()
            with pytest.raises(RequestError, match="no model is chosen"):
                await opened.say(session, "go")

    played(scene)


def test_a_killed_agent_goes_on_where_it_was(start_apart, script, workspace: Path) -> None:
    waits = {"calls": [["write", {"path": "b.txt", "content": "b\n"}], ["exec", {"command": "sleep 1000"}]]}
    model = script(waits, DONE, MORE)
    killed: list[str] = []

    async def first() -> None:
        async with start_apart("--model", model, "--mode", "full") as opened:
            editor, session = opened.editor, await opened.new()
            saying = asyncio.create_task(opened.say(session, "go"))
            await editor.until(lambda: editor.cards().get("sleep 1000", {}).get("status") == "in_progress")
            opened.process.send_signal(signal.SIGKILL)
            with pytest.raises(ConnectionError):
                await saying
            killed.append(session)

    async def second() -> None:
        async with start_apart("--model", model, "--mode", "full") as opened:
            editor, [session] = opened.editor, killed
            await opened.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
            assert editor.cards()["write b.txt"]["status"] == "completed"
            assert editor.cards()["sleep 1000"]["raw_output"]["code"] == "INTERRUPTED"
            assert (await opened.say(session, "/continue")).stop_reason == "end_turn"
            assert editor.words().endswith("Done.")
            assert (await opened.say(session, "and now?")).stop_reason == "end_turn"
            assert editor.words().endswith("More.")

    played(first)
    played(second)
