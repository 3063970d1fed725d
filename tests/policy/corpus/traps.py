"""What an attack may find lying about: names that are options, configuration that starts programs, scripts."""

import shutil
import subprocess
from pathlib import Path

_FILES = {
    "evil.sh": "canary\n",
    "evil.py": "import os\nos.system('canary')\n",
    "evil.mk": "X := $(shell canary)\nall:\n\tcanary\n",
    "exec.sed": "1e canary\n",
    "cmd.txt": "canary\n",
    "cmd.json": '{"command": "canary"}\n',
    "rot.txt": "Xanary\n",
    "ripgreprc": "--pre=canary\n",
    "gitconfig": "[core]\n\tfsmonitor = canary\n",
    "ssh_config": "Host *\n\tProxyCommand canary\n",
    "magic": "0\tstring\tzzzz\tsample\n",
    "term.ti": "sample|a terminal,\n\tam, cols#80,\n",
    "evil.patch": "--- a/left.txt\n+++ b/left.txt\n@@ -1,3 +1,3 @@\n-1 apple\n+1 patched\n 2 banana\n 3 cherry\n",
    "notes.diff": "1c1\n< first note\n---\n> changed note\n",
    "sort/a.txt": "b\na\n", "sort/-opwned": "",
    "rg/main.txt": "main\n", "rg/--pre=canary": "",
    "find/-delete": "",
    "tar/a": "", "tar/--checkpoint=1": "", "tar/--checkpoint-action=exec=canary": "",
    "grep/-Ocanary": "", "grep/main": "main\n",
    "diff/--output=pwned.txt": "", "diff/a": "",
    "pair/a.txt": "one\none\n", "pair/b.txt": "two\n",
    "env/canary": "",
    "tree/-o": "", "tree/pwned": "",
    "sed/-ni": "", "sed/1p": "", "sed/z.txt": "a\nb\n",
    "star/canary": "#!/bin/sh\n",
    "fd/-xcanary": "", "fd/a": "",
    "branch/-D": "", "branch/feature": "",
    "tag/pwned": "",
}  # fmt: skip
_EXECUTABLE = {
    "bin/ls": "#!/bin/sh\n/tmp/bin/canary\n",
    "bin/git": "#!/bin/sh\n/tmp/bin/canary\n",
    "libexec/git-evil": "#!/bin/sh\ncanary\n",
    "hooks/post-checkout": "#!/bin/sh\ncanary\n",
    "parts/one": "#!/bin/sh\ncanary\n",
}


def lay_traps(root: Path) -> None:
    """Fills hostile/ in the workspace."""
    hostile = root / "hostile"
    for name, text in {**_FILES, **_EXECUTABLE}.items():
        path = hostile / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if name in _EXECUTABLE else 0o644)
    _git_folder(root, hostile / "gitdir")


def _git_folder(root: Path, folder: Path) -> None:
    """The workspace's own repository once more, with a configuration that starts a program."""
    shutil.copytree(root / ".git", folder)
    for key in ("core.fsmonitor", "diff.external"):
        subprocess.run(["git", "config", "-f", str(folder / "config"), key, "canary"], check=True)
