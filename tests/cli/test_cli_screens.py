"""The screens of commands on a pseudo-terminal of 60, 80 and 120 columns, compared as text with `screens/`.

To write the files anew after an intended change: HANDRAIL_WRITE_SCREENS=1.
"""

import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.conftest import environment_in

from handrail.cli.main import run as run_words
from handrail.cli.parser import load_command
from handrail.protocol.text import measure_width

SCREENS = Path(__file__).parent / "screens"
STYLE = re.compile(r"\x1b\[[0-9;]*m")
MASKS: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(r"\d{4}-\d\d-\d\d"), "2026-01-01"),
    (re.compile(r"\d\d:\d\d:\d\d"), "12:00:00"),
    (re.compile(r"(?<!\d)\d+\.\d\d(?=(\s|\x1b\[[0-9;]*m)+s\b)"), "0.01"),
    (re.compile(r"\b\d+ s  "), "1 s  "),
    (re.compile(r"(?<=s_)[0-9a-f]+(\n +[0-9a-f]+)?"), lambda found: re.sub("[0-9a-f]", "0", found[0])),
    (re.compile(r"^[0-9a-f]{3}(?=  waiting)|(?<=allow )[0-9a-f]{3}\b|(?<=deny )[0-9a-f]{3}\b", re.M), "8f2"),
]
CODE = "def total(prices):\n    return sum(prices)\n"
SCRIPT = [
    {
        "text": "The total is summed in one place.\nI look at it, then round it half up. " + "One long line. " * 8,
        "calls": [["grep", {"pattern": "sum", "path": "cart.py"}]],
    },
    {"calls": [["edit", {"path": "cart.py", "oldText": "sum(prices)", "newText": "round(sum(prices), 2)"}]]},
    {"calls": [["read", {"path": ".env"}], ["exec", {"command": "rm old.txt; echo done > notes.txt"}]]},
    {"text": "The total is rounded."},
]
UNCOLOURED = {"help", "help-exec", "approvals", "log-changes", "result"}
COPIED = ("next:", "→", "error:", "to answer:")
"""Lines to copy, which no break may cut."""
STABLE_GROUPS = ("network", "config", "models", "clients")
"""Of doctor; the others differ between machines."""
KEPT = "printf 'one\\ntwo\\n' >> made.txt; echo wrote made.txt"


class Place:
    """A workspace with a session, where commands run on terminals of their own."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "shop"
        self.workspace.mkdir()
        self._environment = environment_in(folder)
        (self.workspace / "cart.py").write_text(CODE)
        (self.workspace / "old.txt").write_text("old\n")
        (self.workspace / "last.txt").write_text("last\n")
        (self.workspace / ".env").write_text("TOKEN=1\n")
        (folder / "script.json").write_text(json.dumps(SCRIPT))
        model = f"scripted:{folder / 'script.json'}"
        self.show("run", "round the total half up", "--model", model, "--mode", "auto", "-q", "--unattended")
        found = re.search(r"s_[0-9a-f]{32}", self.show("sessions", columns=1000))
        assert found
        self.session = found[0]
        self.park("write", {"path": "docs/a very long name of a page about rounding.md", "content": "Half up.\n"})
        self.park("exec", {"command": "rm last.txt && tr a-z A-Z <cart.py >an-upper-case-copy-of-it.txt"})

    def show(self, *words: str, columns: int = 80, **changes: str) -> str:
        """The whole of what a command writes to its terminal."""
        child, control = pty.fork()
        if child == 0:
            _run_on_terminal(words, columns, self.workspace, {**self._environment, "TERM": "xterm", **changes})
        found = b""
        with suppress(OSError):  # at the end of the command
            while read := os.read(control, 65536):
                found += read
        os.close(control)
        os.waitpid(child, 0)
        return found.decode().replace("\r\n", "\n")

    def show_screen(self, name: str, columns: int, **environ: str) -> str:
        """A screen of the table, without the parts that differ between machines and runs."""
        known = {"SESSION": self.session}
        if "REQUEST" in NAMED[name]:
            known["REQUEST"] = self.park("exec", {"command": KEPT})
        shown = self.show(*(known.get(word, word) for word in NAMED[name]), columns=columns, **environ)
        for pattern, mask in MASKS:
            shown = pattern.sub(mask, shown)
        if name == "doctor":
            groups = re.split(r"(?m)^(?=\S)", shown)
            shown = "".join(group for group in groups if STYLE.sub("", group).startswith(STABLE_GROUPS))
        return shown

    def park(self, tool: str, arguments: dict[str, str]) -> str:
        """Makes a request that waits. Returns its id."""
        shown = self.show("call", tool, json.dumps(arguments), "--mode", "ask", "--json", columns=1000)
        found = re.search(r"Request ask_(\w+)", shown)
        assert found, shown
        return found[1]


def _run_on_terminal(words: tuple[str, ...], columns: int, folder: Path, environment: dict[str, str]) -> None:
    """Runs a command in the forked process, and ends the process."""
    try:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        run_words(list(words))
        sys.stdout.flush()
    finally:
        os._exit(0)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    for name in ("call", "approvals", "log", "doctor", "exec"):
        load_command(name)  # a forked process need not import it again
    return Place(tmp_path_factory.mktemp("screens"))


NAMED: dict[str, tuple[str, ...]] = {
    "log": ("log", "--session", "SESSION"),
    "log-changes": ("log", "--changes"),
    "doctor": ("doctor",),
    "approvals": ("approvals",),
    "diff": ("diff", "2"),
    "help": ("--help",),
    "help-exec": ("exec", "--help"),
    "error": ("call", "edit", '{"path": "cart.py", "oldText": "sum(items, tax)", "newText": "0"}'),
    "result": ("approvals", "allow", "REQUEST"),
}


SLOW = {"doctor": (60, 80, 120), "result": (80,)}
SHOWN = [(name, columns) for name in NAMED for columns in SLOW.get(name, (60, 80, 120))]


@pytest.mark.parametrize(("name", "columns"), SHOWN)
def test_a_screen_looks_as_it_did(place: Place, name: str, columns: int) -> None:
    painted = place.show_screen(name, columns)
    plain = STYLE.sub("", painted)
    assert ("\x1b" in painted) is (name not in UNCOLOURED), "the styles of the screen"
    if columns == 80 and name not in SLOW:
        assert place.show_screen(name, columns, NO_COLOR="1") == plain, "colour changes nothing else"
    assert all(measure_width(row) <= columns for row in plain.split("\n") if not row.lstrip().startswith(COPIED))
    shown = painted.replace("\x1b", "␛") if columns == 80 else plain
    file = SCREENS / f"{name}-{columns}.txt"
    if os.environ.get("HANDRAIL_WRITE_SCREENS"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(shown)
    assert shown == file.read_text()
