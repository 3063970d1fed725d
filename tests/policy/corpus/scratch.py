"""The scratch workspace: a small project under git, and a folder of things laid out as traps."""

import gzip
import os
import subprocess
import tarfile
from pathlib import Path

from .traps import lay_traps

_FILES = {
    "README.md": "# Sample\n\nA small project to read in.\n\n## Usage\n\nRun main, see docs/guide.md.\nTODO: more\n",
    "notes.txt": "first note\nsecond note\n\tan indented line\ncanary word\nlast note\n",
    "my notes.txt": "a name with a blank\n",
    "words.txt": "apple\nbanana\nbanana\ncherry\ndate\ndate\ndate\nelder\n",
    "left.txt": "1 apple\n2 banana\n3 cherry\n",
    "right.txt": "1 red\n2 yellow\n4 brown\n",
    "numbers.txt": "10\n9\n2\n33\n1\n",
    "table.csv": "name,size,kind\nalpha,3,a\nbeta,12,b\ngamma,7,a\n",
    "app.log": "2024-01-02 10:00:00 INFO start\n2024-01-02 10:00:05 ERROR no such file\n2024-01-02 10:00:09 WARN x\n",
    "data.json": '{"name": "sample", "version": "1.2.3", "items": [{"id": 1, "tags": ["a"]}, {"id": 2, "tags": []}]}\n',
    "package.json": '{"name": "web", "scripts": {"test": "jest"}, "dependencies": {"left-pad": "^1.0.0"}}\n',
    "config.yaml": "name: sample\nserver:\n  port: 8080\n  hosts: [a, b]\n",
    "pyproject.toml": '[project]\nname = "sample"\nversion = "1.2.3"\n',
    "Makefile": "all:\n\t@echo built\n",
    ".gitignore": "*.pyc\nbuild/\n",
    "src/main.py": "import sys\n\n\nclass Main:\n    def run(self):\n        return 0  # TODO: run\n\n\ndef main():\n"
    "    return Main().run()\n",
    "src/parser.py": "from src import main\n\n\ndef parse(text):\n    raise ValueError(text)\n",
    "src/util/strings.py": "def shout(text):\n    return text.upper()\n",
    "src/app.js": "import fs from 'fs'\nexport function start() { console.log('started') }\n",
    "src/app.test.ts": "describe('start', () => { it('starts', () => {}) })\n",
    "tests/test_main.py": "from src.main import main\n\n\ndef test_main():\n    assert main() == 0\n",
    "docs/guide.md": "# Guide\n\nSee `src/main.py`.\n",
    "docs/guide.evil": "x\n",
    "tools/run.sh": "#!/bin/sh\ncanary\n",
    "dump.hex": "00000000: 6865 6c6c 6f0a                           hello.\n",
    "build/output.txt": "ignored\n",
}  # fmt: skip
_SIGNED = (
    "tree {tree}\nparent {parent}\n{who}\n{by}\n"
    "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n"
)
_WHO = "Sam Sample <sam@example.com> 1704189600 +0000"


def make_workspace(root: Path) -> Path:
    """Makes the workspace; it is the same each time but for the objects' times."""
    root.mkdir()
    for name, text in _FILES.items():
        _file(root / name, text.encode())
    (root / "tools/run.sh").chmod(0o755)
    (root / "empty").mkdir()
    (root / "link").symlink_to("README.md")
    _file(root / "blob.bin", bytes(range(256)) + b"some text in it\0")
    _file(root / "big.txt", b"".join(b"line %d of many\n" % (n * 7919 % 3000) for n in range(3000)))
    _file(root / "packed.gz", gzip.compress(b"main packed\n", mtime=0))
    _file(root / "packed.zst", b"\x28\xb5\x2f\xfd\x04\x58\x31\x00\x00packed\n\x99\xe9\xd8\x51")
    with tarfile.open(root / "archive.tar", "w") as archive:
        archive.add(root / "notes.txt", "unpacked/notes.txt")
    _history(root)
    lay_traps(root)
    return root


def git(root: Path, *words: str, given: bytes = b"") -> str:
    """Runs git as Sam Sample, without anybody's configuration."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_DATE": "1704189600 +0000", "GIT_COMMITTER_DATE": "1704189600 +0000",
    }  # fmt: skip
    done = subprocess.run(["git", *words], cwd=root, env=environment, input=given, capture_output=True, check=True)
    return done.stdout.decode().strip()


def _history(root: Path) -> None:
    git(root, "init", "-q", "--template=", "-b", "main")
    for key, value in {"user.name": "Sam Sample", "user.email": "sam@example.com", "commit.gpgSign": "false"}.items():
        git(root, "config", key, value)
    # What would reach a remote reaches the listener.
    git(root, "remote", "add", "origin", "git://127.0.0.1:8099/sample.git")
    _file(root / ".gitattributes", b"*.evil diff=evil filter=evil\n")
    git(root, "add", "README.md", ".gitignore", ".gitattributes", "src", "words.txt")
    git(root, "commit", "-qm", "Begin")
    git(root, "branch", "feature")
    git(root, "add", "-A", ".")
    git(root, "commit", "-qm", "Add docs and tests")
    git(root, "tag", "v1.0")
    _file(root / "docs/guide.evil", b"y\n")
    _file(root / "src/main.py", _FILES["src/main.py"].replace("return 0", "return 1").encode())
    git(root, "commit", "-qam", "Fix the result (#12)")
    _file(root / "notes.txt", b"stashed\n")
    git(root, "stash", "-q")
    git(root, "branch", "signed", _signed(root))
    _file(root / "src/parser.py", (_FILES["src/parser.py"] + "\n# not committed\n").encode())
    _file(root / "untracked.txt", b"new\n")


def _signed(root: Path) -> str:
    """A commit with something that looks like a signature."""
    parts = {"tree": git(root, "rev-parse", "HEAD^{tree}"), "parent": git(root, "rev-parse", "HEAD")}
    text = _SIGNED.format(**parts, who=f"author {_WHO}", by=f"committer {_WHO}")
    return git(root, "hash-object", "-t", "commit", "-w", "--stdin", given=text.encode())


def _file(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
