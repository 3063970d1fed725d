"""handrail acp: the MCP servers of the editor are tools under the same policy."""

import sys
from pathlib import Path

from acp.schema import EnvVariable, HttpHeader, HttpMcpServer, McpServerStdio, SseMcpServer
from editor import chose, played
from tool_server import DOT, over_http

SERVER = Path(__file__).with_name("tool_server.py")
SECRET = "s3cr3t-0f-the-ed1t0r"
GREET = {"calls": [["mcp__my_server__greet", {"name": "Ada"}]]}
DRAW = {"calls": [["mcp__my_server__draw", {}]]}
DONE = {"text": "Done."}


def written(folder: str) -> bytes:
    """All that is in the files of a folder."""
    return b"".join(path.read_bytes() for path in Path(folder).rglob("*") if path.is_file())


def test_a_server_of_the_editor_is_asked_about_and_called(
    start, script, workspace: Path, environment: dict[str, str]
) -> None:
    (workspace / "server.py").write_text(SERVER.read_text())
    variables = [EnvVariable(name="GREETING", value="Hello"), EnvVariable(name="TOKEN", value=SECRET)]
    server = McpServerStdio(name="my server!", command=sys.executable, args=["server.py", SECRET], env=variables)
    broken = McpServerStdio(name="broken", command=f"/no/{SECRET}", args=[], env=[])

    async def scene() -> None:
        async with start("--model", script(GREET, DRAW, DONE), "--mode", "ask") as opened:
            editor = opened.editor
            new = await opened.agent.new_session(cwd=str(workspace), mcp_servers=[server, broken])
            editor.answers += [chose("once"), chose("once")]
            assert (await opened.say(new.session_id, "greet her, and draw")).stop_reason == "end_turn"
            assert [asked.card.kind for asked in editor.asked] == ["other", "other"]
            assert "Hello, Ada" in editor.contents()
            pictures = [one for one in editor.cards()["mcp__my_server__draw"]["content"] if one["type"] == "content"]
            assert DOT in [one["content"].get("data") for one in pictures]
            await opened.agent.load_session(cwd=str(workspace), session_id=new.session_id, mcp_servers=[])
            assert SECRET not in str(editor.told)

    played(scene)
    assert SECRET.encode() not in written(environment["HANDRAIL_STATE_DIR"])


def test_a_server_with_an_address_is_reached_with_its_headers(
    start, script, workspace: Path, environment: dict[str, str], capfd
) -> None:
    async def scene(address: str) -> None:
        header = HttpHeader(name="Authorization", value=f"Bearer {SECRET}")
        server = HttpMcpServer(type="http", name="my server", url=address, headers=[header])
        async with start("--model", script(GREET, DONE), "--mode", "ask") as opened:
            assert (await opened.agent.initialize(protocol_version=1)).agent_capabilities.mcp_capabilities.http
            new = await opened.agent.new_session(cwd=str(workspace), mcp_servers=[server])
            opened.editor.answers.append(chose("once"))
            assert (await opened.say(new.session_id, "greet her")).stop_reason == "end_turn"
            assert "Good day, Ada" in opened.editor.contents()

    with over_http(SECRET) as address:
        played(lambda: scene(address))
    assert SECRET not in "".join(capfd.readouterr())
    assert SECRET.encode() not in written(environment["HANDRAIL_STATE_DIR"])


def test_where_the_managed_file_lists_servers_those_of_the_editor_are_not_used(
    start, script, workspace: Path, tmp_path: Path, capfd
) -> None:
    (tmp_path / "managed.toml").write_text("[mcp.servers]\n")
    (workspace / "server.py").write_text(SERVER.read_text())
    server = McpServerStdio(name="my server", command=sys.executable, args=["server.py"], env=[])

    async def scene() -> None:
        async with start("--model", script(GREET, DONE), managed=tmp_path / "managed.toml") as opened:
            new = await opened.agent.new_session(cwd=str(workspace), mcp_servers=[server])
            assert (await opened.say(new.session_id, "greet her")).stop_reason == "end_turn"
            [card] = opened.editor.cards().values()
            assert card["raw_output"]["code"] == "UNKNOWN_TOOL"

    played(scene)
    assert "the managed file fixes the MCP servers, so the editor's servers are ignored" in capfd.readouterr().err


def test_servers_that_cannot_be_told_apart_or_reached_are_told_of(start, script, workspace: Path, capfd) -> None:
    one = McpServerStdio(name="my server", command="true", args=[], env=[])
    same = McpServerStdio(name="my_server", command="true", args=[SECRET], env=[])
    stream = SseMcpServer(type="sse", name="stream", url=f"https://{SECRET}.example", headers=[])

    async def scene() -> None:
        async with start("--model", script(DONE)) as opened:
            await opened.agent.new_session(cwd=str(workspace), mcp_servers=[one, same, stream])

    played(scene)
    told = capfd.readouterr().err
    assert "my_server of the editor is not used: another one is called my_server, too" in told
    assert "stream of the editor is not used: it has neither a command nor a url" in told
    assert SECRET not in told
