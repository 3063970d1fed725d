"""handrail acp: the MCP servers of the editor are tools under the same policy."""

import sys
from pathlib import Path

from acp.schema import EnvVariable, McpServerStdio, SseMcpServer
from editor import chose, played

SERVER = Path(__file__).with_name("tool_server.py")
GREET = {"calls": [["mcp__my_server__greet", {"name": "Ada"}]]}


def test_a_server_of_the_editor_is_asked_about_and_called(start, script, workspace: Path) -> None:
    (workspace / "server.py").write_text(SERVER.read_text())
    variables = [EnvVariable(name="GREETING", value="Hello")]
    server = McpServerStdio(name="my server!", command=sys.executable, args=["server.py"], env=variables)
    broken = McpServerStdio(name="broken", command="/no/such/program", args=[], env=[])

    async def scene() -> None:
        async with start("--model", script(GREET, {"text": "Done."}), "--mode", "ask") as opened:
            editor = opened.editor
            new = await opened.agent.new_session(cwd=str(workspace), mcp_servers=[server, broken])
            editor.answers.append(chose("once"))
            assert (await opened.say(new.session_id, "greet her")).stop_reason == "end_turn"
            assert len(editor.asked) == 1
            assert "Hello, Ada" in editor.contents()

    played(scene)


def test_servers_that_cannot_be_told_apart_or_reached_are_told_of(start, script, workspace: Path, capfd) -> None:
    one = McpServerStdio(name="my server", command="true", args=[], env=[])
    same = McpServerStdio(name="my_server", command="true", args=["s3cr3t"], env=[])
    stream = SseMcpServer(type="sse", name="stream", url="https://s3cr3t.example", headers=[])

    async def scene() -> None:
        async with start("--model", script({"text": "Done."})) as opened:
            await opened.agent.new_session(cwd=str(workspace), mcp_servers=[one, same, stream])

    played(scene)
    told = capfd.readouterr().err
    assert "my_server of the editor is not used: another one is called my_server, too" in told
    assert "stream of the editor is not used: it is neither started nor reached over HTTP" in told
    assert "s3cr3t" not in told
