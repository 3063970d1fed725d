"""What an editor's model does, and what a client over HTTP calls: files, a command, what has to be asked about, and a
command that goes on. Whatever is done twice shows in the files: edits and commands append."""

import json
from pathlib import Path
from typing import Any

PROMPT, DONE = "Do all of it.", "Done."
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("write", {"path": "made/new.txt", "content": "made\n"}),
    ("exec", {"command": "bash count.sh first"}),
    ("write", {"path": ".github/workflows/asked.yml", "content": "on: push\n"}),
    ("exec", {"command": "bash count.sh asked; cat /dev/null > .git/hooks/pre-push"}),
    ("edit", {"path": "list.txt", "oldText": "end\n", "newText": "more\nend\n"}),
    ("exec", {"command": "bash go_on.sh", "background": True}),
]
"""In mode auto the third and the fourth ask; where there is no layer, so does every command."""
APPENDS = {"bash count.sh first": "first.txt", "bash go_on.sh": "on.txt"} | {CALLS[3][1]["command"]: "asked.txt"}
"""Where each command leaves a line."""
_FILES = {
    "list.txt": "begin\nend\n",
    "count.sh": "echo $1 >> $1.txt\n",
    "go_on.sh": "echo on >> on.txt\nexec sleep 1000\n",
    ".git/hooks/pre-push": "",
}


def prepare(folder: Path, tier: int) -> None:
    """The tree and the settings that every play begins with."""
    home, workspace = folder / "home", folder / "workspace"
    script = [{"calls": [call]} for call in CALLS]
    files = {workspace / name: text for name, text in _FILES.items()}
    files |= {
        home / ".config/handrail/config.toml": f'[sandbox]\ntier = {tier}\n[search]\nengine = "python"\n',
        folder / "script.json": json.dumps([*script, {"text": DONE}]),
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def words_for(face: str, folder: Path) -> list[str]:
    """The command that serves."""
    if face == "acp":
        return ["acp", "--model", f"scripted:{folder / 'script.json'}", "--mode", "auto"]
    return ["mcp", "--http", "127.0.0.1:0", "--mode", "auto"]
