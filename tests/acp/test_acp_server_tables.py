"""The MCP servers of an editor beside those of the settings."""

from pathlib import Path

from handrail.acp.session import EditorServer
from handrail.cli.commands.acp import find_editor_sources
from handrail.settings import load


def test_what_the_settings_add_to_a_server_counts_for_that_of_the_editor_too(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "config.toml").write_text(
        '[mcp.servers.files]\nwritable = true\n[mcp.servers.own]\ncommand = "a"\n[mcp.servers.nobodys]\nhints = true\n'
    )
    environ = {"HANDRAIL_CONFIG": str(tmp_path / "config.toml"), "HANDRAIL_STATE_DIR": str(tmp_path / "state")}
    loaded = load(environ, {}, str(tmp_path / "workspace"))
    given = tuple(EditorServer(name=name, command="b", args=(), variables={}) for name in ("files", "own"))
    sources = find_editor_sources(loaded, str(tmp_path / "workspace"), given).sources
    try:
        opened = {source.server: getattr(source, "reach", ()) for source in sources}
    finally:
        for source in sources:
            source.close()
    assert set(opened) == {"files", "own"}
    assert "fs.write" in opened["files"]
    assert "fs.write" not in opened["own"]
