"""handrail acp: which sessions an editor is told of."""

from pathlib import Path

from editor import played

from handrail.store.state_dir import StateFolder

DONE = {"text": "Done."}


def test_who_names_no_folder_is_told_the_sessions_of_all_that_are_there(
    start, script, workspace: Path, tmp_path: Path
) -> None:
    other, gone = tmp_path / "ö ther", tmp_path / "gone"
    model = script(DONE)
    said: dict[str, str] = {}

    async def first() -> None:
        async with start("--model", model) as opened:
            for folder in (workspace, other, gone):
                folder.mkdir(exist_ok=True)
                session = await opened.new(folder)
                await opened.say(session, f"look at {folder.name}")
                said[str(folder)] = session
            await opened.new()  # nobody talks in this one
        gone.rmdir()

    async def second() -> None:
        async with start("--model", model) as opened:
            listed = (await opened.agent.list_sessions()).sessions
            assert [(one.cwd, one.session_id) for one in listed] == [
                (str(folder), said[str(folder)]) for folder in (other, workspace)
            ]
            for one in listed:
                await opened.agent.load_session(cwd=one.cwd, session_id=one.session_id, mcp_servers=[])
        async with start("--model", model, "--workspace", str(other)) as opened:
            [only] = (await opened.agent.list_sessions()).sessions
            assert only.cwd == str(other)

    played(first)
    played(second)


def test_a_journal_that_cannot_be_read_hides_no_other_session(
    start, script, workspace: Path, environment: dict[str, str]
) -> None:
    async def scene() -> None:
        async with start("--model", script(DONE)) as opened:
            sessions = [await opened.new(), await opened.new()]
            for session in sessions:
                await opened.say(session, "look")
            await opened.agent.close_session(session_id=sessions[0])
            state = StateFolder(environment["HANDRAIL_STATE_DIR"])
            Path(state.session(str(workspace), sessions[0]), "journal.db").write_bytes(b"no database at all" * 100)
            listed = (await opened.agent.list_sessions(cwd=str(workspace))).sessions
            assert [one.session_id for one in listed] == sessions[1:]

    played(scene)
