"""Runs commands in bare bubblewrap: all of / read-only, no network, and a scratch workspace."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

WORKSPACE = "/tmp/workspace"
BASH = ("bash", "--noprofile", "--norc", "-c")
_PATH = "/tmp/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
_NEEDED = (
    "bash", "bwrap", "bzip2", "column", "curl", "diff3", "ed", "file", "git", "hexdump", "jq", "less", "make", "mawk",
    "openssl", "patch", "perl", "python3", "script", "ssh", "ssh-keyscan", "strace", "strings", "tic", "tree",
    "unshare", "xxd", "xz", "yq", "zip",
)  # fmt: skip
"""Programs that not every machine has."""
_HERE = Path(__file__).parent


class Sandbox(msgspec.Struct, frozen=True):
    """Where a command's workspace, its marks and the fixture's own programs are outside."""

    workspace: Path
    marks: Path
    programs: Path
    writable: bool = True

    def run(
        self, text: str, *, terminal: bool = False, listener: bool = False, replaced: Sequence[str] = ()
    ) -> "subprocess.CompletedProcess[bytes]":
        """Runs a text as bash gets it; ten seconds at most, then it ends as timeout(1) would end it."""
        command = [*self.prefix(replaced), *_command(text, terminal=terminal, listener=listener)]
        try:
            return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, b"", b"")

    def prefix(self, replaced: Sequence[str] = ()) -> list[str]:
        """Bubblewrap with everything that stands before the command."""
        kind = "--bind" if self.writable else "--ro-bind"
        return [
            *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"),
            *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),
            *("--dir", "/tmp/home", "--dir", "/tmp/bin", kind, str(self.workspace), WORKSPACE),
            *("--bind", str(self.marks), "/tmp/marks", "--ro-bind", str(_HERE / "listener.pl"), "/tmp/listener.pl"),
            *self._programs(replaced),
            *("--setenv", "PATH", _PATH, "--setenv", "HOME", "/tmp/home", "--setenv", "LANG", "C.UTF-8"),
            *("--setenv", "TERM", "dumb", "--setenv", "SHELL", "/bin/bash", "--chdir", WORKSPACE),
        ]

    def _programs(self, replaced: Sequence[str]) -> list[str]:
        binds = [(program, f"/tmp/bin/{program.name}") for program in sorted(self.programs.iterdir())]
        for name in replaced:
            places = [f"/tmp/bin/{name}", os.path.realpath(f"/usr/bin/{name}")]
            binds += [
                (self.programs / "canary", place) for place in places if place[:5] == "/tmp/" or Path(place).exists()
            ]
        return [word for source, place in binds for word in ("--ro-bind", str(source), place)]


def fixture_programs(folder: Path) -> Path:
    """A folder with the canary, and with rg and fd under the names that everybody uses."""
    missing = [name for name in _NEEDED if shutil.which(name, path=_PATH) is None]
    assert not missing, f"the corpora run these, and they are missing: {missing}. scripts/test installs them on Debian"
    folder.mkdir()
    canary = folder / "canary"
    canary.write_text("#!/bin/sh\n: >>/tmp/marks/executed\n")
    canary.chmod(0o755)
    for name, program in {"rg": "rg", "fd": "fdfind"}.items():
        found = shutil.which(program)
        assert found, f"{program} is missing"
        (folder / name).symlink_to(Path(found).resolve())
    return folder


def _command(text: str, *, terminal: bool, listener: bool) -> list[str]:
    if terminal:
        # script(1) hands its command to a shell; the text itself goes past it.
        return ["env", f"TEXT={text}", "script", "-qec", 'exec bash --noprofile --norc -c "$TEXT"', "/dev/null"]
    return [*(("perl", "/tmp/listener.pl") if listener else ()), *BASH, text]
