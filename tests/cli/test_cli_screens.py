"""The screens of commands on a pseudo-terminal of 60, 80 and 120 columns: dark, light and without colours.

`screens/` has each with the codes of a dark terminal. A light terminal gets other codes at the same places.
To write the files anew after an intended change: HANDRAIL_WRITE_SCREENS=1.
"""

import fcntl
import json
import os
import pty
import re
import select
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
    (re.compile(r"(?<=tests in )0\.\d{3}s"), "0.000s"),
    (re.compile(r"\b\d+ (s|min) +(?=cli )"), "1 s    "),
    (re.compile(r"(?<!\d)\d\.\d(?= s\b)"), "0.01"),
    (re.compile(r"(?<=scripted:)/tmp/\S+(\n  )?\S*(?=/script)"), "/home"),
    (re.compile(r"/tmp/\S+/(?=trusting|shop\b|script)"), "/home/"),
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
LIVE = re.compile(r"\r(\x1b\[\d+A)?([^\n\r]*\x1b\[K\n?)*\x1b\[J")
"""Rows of a call that ran for long, and their end."""
LIGHT = {"\x1b[33m": "\x1b[35m", "\x1b[36m": "\x1b[34m"}
"""The codes of a dark terminal that a light one gets otherwise."""
UNCOLOURED = {"help", "help-exec", "approvals", "log-changes", "trust"}
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
        (folder / "trusting").mkdir()
        (folder / "trusting/handrail.toml").write_text('mode = "auto"\n')
        self._model = f"scripted:{folder / 'script.json'}"
        (folder / "script.json").write_text(json.dumps(SCRIPT))
        self.show("run", "round the total half up", "--model", self._model, "--mode", "auto", "-q", "--unattended")
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
                while b"any other key: no." in found and not select.select([control], [], [], 0.2)[0]:
                    os.write(control, b"n")  # until the prompt takes it
        os.close(control)
        os.waitpid(child, 0)
        return found.decode().replace("\r\n", "\n")

    def show_screen(self, name: str, columns: int, **environ: str) -> str:
        """A screen of the table, without the parts that differ between machines and runs."""
        known = {"SESSION": self.session, "MODEL": self._model}
        environ |= {"CI": "1"} if name == "demo" else {}  # otherwise it asks
        environ |= {"HOME": str(self.workspace.parent)} if name == "run" else {}  # its first row names the folder
        if "REQUEST" in NAMED[name]:
            known["REQUEST"] = self.park("exec", {"command": KEPT})
        shown = LIVE.sub("", self.show(*(known.get(word, word) for word in NAMED[name]), columns=columns, **environ))
        for pattern, mask in MASKS:
            shown = pattern.sub(mask, shown)
        if name in {"run", "demo"}:  # the columns depend on the digits of a duration
            shown = re.sub("  +", "  ", re.sub(r"│ Ran in a .*?just now\.[^\n]*", "│ Ran", shown, flags=re.DOTALL))
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
    "trust": ("trust", "--workspace", "../trusting"),
    "demo": ("demo",),
    "run": ("run", "round the total", "--model", "MODEL", "--mode", "plan", "--unattended"),
    "result": ("approvals", "allow", "REQUEST"),
}
COLOURS = {"dark": {}, "light": {"COLORFGBG": "0;15"}, "none": {"NO_COLOR": "1"}}
ONCE = {"result", "demo"}
"""These change files, or take seconds. Their three looks are seen at three widths."""
SHOWN = [
    (name, columns, colours)
    for name in NAMED
    for columns, own in zip((60, 80, 120), COLOURS, strict=True)
    for colours in ((own,) if name in ONCE else COLOURS)
]


@pytest.mark.parametrize(("name", "columns", "colours"), SHOWN)
def test_a_screen_looks_as_it_did(place: Place, name: str, columns: int, colours: str) -> None:
    writes = bool(os.environ.get("HANDRAIL_WRITE_SCREENS"))
    painted = place.show_screen(name, columns, **({} if writes else COLOURS[colours]))
    rows = STYLE.sub("", painted).split("\n")
    if name not in {"run", "demo"}:  # the words of a model are not wrapped
        assert all(measure_width(row) <= columns for row in rows if not row.lstrip().startswith(COPIED))
    assert all(row == row.rstrip() for row in rows if name == "log")
    file = SCREENS / f"{name}-{columns}.txt"
    if writes:
        file.write_text(painted.replace("\x1b", "␛"))
    expected = file.read_text().replace("␛", "\x1b")
    assert ("\x1b" in expected) is (name not in UNCOLOURED), "the styles of the screen"
    if not writes and colours == "none":
        expected = STYLE.sub("", expected)
        expected = re.sub("  +", "  ", expected) if name in {"run", "demo"} else expected
    elif not writes and colours == "light":
        expected = STYLE.sub(lambda found: LIGHT.get(found[0], found[0]), expected)
    assert painted == expected
