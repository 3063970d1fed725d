"""A reader of README.md or of a page of docs, who runs its blocks of code in the order of the page.

A page of docs starts in the sample project that `handrail demo --keep shop` leaves, after the demo. README.md starts
in a clone. Everything is real, except:

- The provider of the model is a server on the loopback that speaks Anthropic's wire and always says the same.
- The installation from a package index is an environment with the packages of this one (`_install`).
- `scripts/demo` and `scripts/test` are only looked up.

HTML comments before a block say how it runs. The site does not show them.

    <!-- not run: REASON -->      the block is only read
    <!-- needs: jq -->            it runs if this machine has the program
    <!-- exit: 3 -->              it ends with this code; every other command succeeds
    <!-- file: NAME -->           the block is a file, relative to the home folder or, without ~, to the project
    <!-- press: y -->             it is a screen at a terminal of 80 columns, and the person presses this key
    <!-- written by: zed -->      JSON that `handrail mcp --config zed --write` writes, but for the program's path
    <!-- setup: COMMANDS -->      commands that the page does not show
    <!-- let: 8f2 = COMMAND -->   from here on, this word stands for the output of the command
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.wires.anthropic_wire import AnthropicWire, answer

from handrail.settings import load
from people import Program

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = ("sh", "console", "python", "toml", "json", "text", "markdown", "lua")
INSTALLS = re.compile(r"^python3 -m venv (\S+)\n\S+/bin/pip install '\.\[([\w,]+)\]'$", re.MULTILINE)
"""These commands need a package index."""
_DEVELOPS = re.compile(r"^(scripts/(?:demo|test))$", re.MULTILINE)
"""These make the environment of a developer, and one of them runs the tests."""
_TOKEN = re.compile(r"<!-- (?!guide)([a-z ]+): (.*?) ?-->|^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", re.DOTALL)
"""A command, which may go on in the next line, and its output."""
_GENERATED = "<!-- Generated:"
_KEEP_SHELL = 'trap \'code=$?; pwd >"$PAGE/folder"; export -p >"$PAGE/variables"; exit $code\' EXIT\n'
"""A block goes on in the folder and with the variables of the block before."""
_RUN_PROGRAM = """\
import ast, asyncio, inspect, sys
code = compile(sys.argv[1], "block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
made = eval(code, {"__name__": "__main__"})
asyncio.run(made) if inspect.iscoroutine(made) else None
"""


class Block(NamedTuple):
    """A block of code, or a hidden command."""

    page: str
    line: int
    language: str
    """`setup` and `let` are comments with commands."""
    text: str
    marks: dict[str, str]

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def list_pages() -> list[Path]:
    """README.md and the pages of docs that people write."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if _GENERATED not in page.read_text()]


def list_blocks(page: Path) -> list[Block]:
    """The blocks of a page, each with its marks."""
    blocks, marks, text, name = list[Block](), dict[str, str](), page.read_text(), str(page.relative_to(ROOT))
    for found in _TOKEN.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found[1] in {"setup", "let"}:
            blocks.append(Block(name, line, found[1], found[2], {}))
        elif found[1]:
            marks[found[1]] = found[2]
        else:
            body = re.sub(f"^{found[3]}", "", found[5], flags=re.MULTILINE)
            blocks.append(Block(name, line, found[4], body, marks))
            marks = {}
    return blocks


class Reader:
    """Runs the blocks of one page, in a home of their own."""

    def __init__(self, place: Path, folder: Path, variables: dict[str, str]) -> None:
        self.place = place
        self.words: dict[str, str] = {}
        (place / "page").mkdir(parents=True, exist_ok=True)
        (place / "page/folder").write_text(str(folder))
        self.variables = variables | {"HOME": str(place / "home"), "LANG": "C.UTF-8", "PAGE": str(place / "page")}

    @property
    def folder(self) -> Path:
        return Path((self.place / "page/folder").read_text().strip())

    def run(self, block: Block) -> None:
        """Runs a block. AssertionError: it does not do what the page says."""
        marks, text = block.marks, block.text
        for word, value in self.words.items():
            text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", value, text)
        block = block._replace(text=text)
        if "not run" in marks or ("needs" in marks and shutil.which(marks["needs"]) is None):
            return
        if "file" in marks:
            self._write(marks["file"], text)
        elif "press" in marks:
            self._press(block)
        elif block.language == "let":
            word, _, command = text.partition(" = ")
            self.words[word] = self._shell(block, command).strip()
            assert self.words[word], f"{block.place}: {command} printed nothing"
        elif block.language in {"sh", "setup"}:
            self._shell(block, text)
        elif block.language == "console":
            self._converse(block)
        elif block.language == "python":
            self._start(block, [self._python, "-c", _RUN_PROGRAM, text])
        elif block.language == "json" and "written by" in marks:
            self._compare_configuration(block)

    @property
    def _python(self) -> str:
        own = self.place / "home/.handrail/bin/python"
        return str(own if own.exists() else sys.executable)

    def _write(self, name: str, text: str) -> None:
        path = Path(name.replace("~", str(self.place / "home"), 1)) if name.startswith("~") else self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _shell(self, block: Block, text: str) -> str:
        if found := INSTALLS.search(text):
            before, after = text[: found.start()], text[found.end() :]
            self._shell(block, before)
            self._install(Path(found[1].replace("~", str(self.place / "home"))))
            return self._shell(block, after)
        text = _DEVELOPS.sub(r"test -x \1", text)
        variables = self.place / "page/variables"
        start = f'. "{variables}"\n' if variables.exists() else ""
        return self._start(block, ["bash", "-c", f"set -e -o pipefail\n{start}{_KEEP_SHELL}{text}\n"])

    def _start(self, block: Block, command: list[str]) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        said = f"{block.place}: exit {done.returncode}\n{block.text}\n{done.stdout}\n{done.stderr}"
        assert done.returncode == int(block.marks.get("exit", "0")), said
        assert "Traceback (most recent" not in done.stderr, said
        return done.stdout + done.stderr if block.language == "console" else done.stdout

    def _converse(self, block: Block) -> None:
        """Runs each command behind `$ `, and compares its output with the lines below it."""
        parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
        assert not parts[0], f"{block.place} begins with output"
        for number, part in enumerate(parts[1:], 2):
            marks = block.marks if number == len(parts) else {}
            command, expected = _COMMAND.fullmatch(part).groups()  # pyright: ignore[reportOptionalMemberAccess]
            shown = self._shell(block._replace(marks=marks), command)
            assert matches(expected, shown), f"{block.place}: $ {command}\npage:\n{expected}\nhere:\n{shown}"

    def _press(self, block: Block) -> None:
        command, _, expected = block.text.partition("\n")
        words = ["bash", "-c", command.removeprefix("$ ")]
        variables = self.variables | {"TERM": "xterm", "NO_COLOR": "1"}
        program = Program(words, self.folder, variables, columns=80)
        try:
            program.terminal.sees("└")
            last = expected.rstrip().splitlines()[-1]
            program.press_until(block.marks["press"].encode(), last.partition("·")[0].rstrip())
            assert program.ends() == int(block.marks.get("exit", "0")), program.terminal.shown
            shown = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", program.terminal.shown).replace("\r", "")
        finally:
            program.close()
        assert all(len(line) <= 80 for line in expected.splitlines()), block.place
        shown = shown[shown.index("┌") :]
        assert matches(expected, shown), f"{block.place}\npage:\n{expected}\nhere:\n{shown}"

    def _compare_configuration(self, block: Block) -> None:
        home = self.place / "client"
        home.mkdir()
        command = f"HOME={home} handrail mcp --config {block.marks['written by']} --write"
        self._shell(block, command)
        [written] = [path for path in home.rglob("*.json") if "handrail" in path.read_text()]
        shown, settings = json.loads(block.text), json.loads(written.read_text())
        assert _is_part(shown, settings), f"{block.place}\npage: {shown}\nhere: {settings}"

    def _install(self, home: Path) -> None:
        """Makes an environment with the clone in it, and with the packages of this one."""
        venv.create(home, symlinks=True)
        [packages] = home.glob("lib/python*/site-packages")
        own = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "here.pth").write_text("\n".join([str(self.folder / "src"), *own]) + "\n")
        program = home / "bin/handrail"
        program.write_text(f"#!{home}/bin/python\nimport sys\nfrom handrail.cli.main import main\nsys.exit(main())\n")
        program.chmod(0o755)


def matches(expected: str, shown: str) -> bool:
    """Whether output is as the page has it. `…` on the page stands for anything, and times differ."""
    pattern = ".*".join(re.escape(part.strip()) for part in _plain(expected).split("…"))
    return not expected.strip() or re.search(pattern, _plain(shown), re.DOTALL) is not None


def _plain(text: str) -> str:
    text = re.sub(r"\b\d+\.\d+ ?s\b|\b\d\d:\d\d:\d\d\b|\b20\d\d-\d\d-\d\d\b", "TIME", text)
    return " ".join(text.split())


def _is_part(shown: object, settings: object) -> bool:
    if isinstance(shown, dict) and isinstance(settings, dict):
        return all(_is_part(value, settings.get(key)) for key, value in shown.items())  # pyright: ignore
    if isinstance(shown, str) and isinstance(settings, str):
        return shown.rpartition("/")[2] == settings.rpartition("/")[2]
    return shown == settings


def check_settings(block: Block, place: Path) -> None:
    """Loads a block of TOML as the user file."""
    file = place / "config.toml"
    file.write_text(block.text)
    tomllib.loads(block.text)
    load({"HANDRAIL_CONFIG": str(file), "HOME": str(place), "HANDRAIL_STATE_DIR": str(place / "state")}, {}, None)


def open_provider() -> AnthropicWire:
    """Starts a provider that has one answer."""
    wire = AnthropicWire()
    wire.always(answer("I see no failing test."))
    return wire


class SampleProject:
    """The sample project of the demo. Each page finds it fresh, at the same path, because the state names the path."""

    def __init__(self, place: Path, variables: dict[str, str]) -> None:
        self.place, self._fresh = place / "reader", place / "fresh"
        (self.place / "home").mkdir(parents=True)
        self._variables = variables
        reader = Reader(self.place, self.place / "home", variables)
        reader.run(Block("demo", 0, "setup", "handrail demo --keep shop", {}))
        shutil.copytree(self.place, self._fresh, symlinks=True)

    def open_reader(self) -> Reader:
        """Restores the project for the next page."""
        shutil.rmtree(self.place)
        shutil.copytree(self._fresh, self.place, symlinks=True)
        (self.place / "page/variables").unlink()
        return Reader(self.place, self.place / "home/shop", self._variables)


def list_problems(block: Block) -> Iterator[str]:
    """What is wrong with a block before it runs."""
    if block.language not in {*LANGUAGES, "setup", "let"}:
        yield f"{block.place}: unknown language {block.language!r}"
    known = {"not run", "needs", "exit", "file", "press", "written by"}
    yield from (f"{block.place}: unknown mark {mark!r}" for mark in block.marks.keys() - known)
    if block.language in {"lua", "markdown"} and not block.marks:
        yield f"{block.place}: a block of {block.language} is a file, or has the reason why it does not run"
    if block.language == "json" and "not run" not in block.marks:
        json.loads(block.text)
    if block.language == "python":
        compile(block.text, block.place, "exec", flags=0x2000)  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    if block.language == "text" and re.match(r"\$ ", block.text) and "press" not in block.marks:
        yield f"{block.place}: a command in a block that does not run; use console"


def clean_variables() -> dict[str, str]:
    """The variables of the reader, with the program of this environment."""
    return {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
