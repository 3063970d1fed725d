"""The README works as it is written: its commands and programs run, in the order of the page."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from people import Program

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INSTALLS = re.compile(r"python3 -m venv (\S+)|(\S+)/bin/pip install '\.\[([\w,]+)\]'")
"""These commands need a package index. The test makes the same environment out of the packages that it has itself."""
DEVELOPS = ("scripts/demo", "scripts/test")
"""These make the environment of a developer, and one of them runs this test. They are only looked up."""


class Step(NamedTuple):
    kind: str
    """`sh`, one command; or `python`, a program."""
    text: str


def list_steps() -> Iterator[Step]:
    for kind, text in BLOCK.findall(README):
        if kind == "sh":
            yield from (Step("sh", line) for line in text.splitlines())
        elif kind != "text":
            yield Step(kind, text)


STEPS = list(list_steps())


class Reader:
    """Follows the page, in a home of their own."""

    def __init__(self, place: Path, repository: str) -> None:
        self.place = self.folder = place
        (place / "home").mkdir()
        (place / "script.json").write_text('[{"text": "I see no failing test."}]')
        self.said_for = {
            "REPOSITORY-URL": repository,
            "anthropic:NAME": f"scripted:{place / 'script.json'}",
        }
        self.environment = {"HOME": str(place / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}

    def follow(self, step: Step) -> None:
        if step.kind == "python":
            self.run([str(self.place / "home/.handrail/bin/python"), "-c", step.text])
        elif step.text.startswith("cd "):
            self.folder /= step.text.removeprefix("cd ")
        elif step.text.startswith("export PATH="):
            self.environment["PATH"] = self.ask_shell(step.text.removeprefix("export PATH="))
        elif found := INSTALLS.fullmatch(step.text):
            if found[1]:
                self.install(Path(self.ask_shell(found[1])))
        elif step.text in DEVELOPS:
            assert os.access(self.folder / step.text, os.X_OK), step.text
        else:
            for name, value in self.said_for.items():
                step = step._replace(text=step.text.replace(name, value))
            self.run(["bash", "-c", step.text])

    def run(self, command: list[str]) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def ask_shell(self, words: str) -> str:
        return self.run(["bash", "-c", f"echo {words}"]).rstrip("\n")

    def install(self, home: Path) -> None:
        """Makes an environment with the clone in it, and with the packages of this one."""
        venv.create(home, symlinks=True)
        [packages] = home.glob("lib/python*/site-packages")
        own = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "here.pth").write_text("\n".join([str(self.folder / "src"), *own]) + "\n")
        program = home / "bin/handrail"
        program.write_text(f"#!{home}/bin/python\nimport sys\nfrom handrail.cli.main import main\nsys.exit(main())\n")
        program.chmod(0o755)


def publish(folder: Path) -> Path:
    """Makes a repository of the files as they are now, committed or not."""
    environment = os.environ | {"GIT_DIR": str(folder), "GIT_WORK_TREE": str(ROOT), "GIT_CONFIG_GLOBAL": os.devnull}
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "gc.auto=0", "-c", "core.looseCompression=0"]
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    for words in (["add", "-A", "."], ["commit", "-q", "-m", "As it is"]):
        subprocess.run(["git", *who, *words], cwd=ROOT, env=environment, check=True)
    return folder


def test_every_command_and_program_of_the_page_runs_in_its_order(tmp_path: Path) -> None:
    reader = Reader(tmp_path, str(publish(tmp_path / "origin.git")))
    for step in STEPS:
        reader.follow(step)
    settings = reader.folder / ".mcp.json"
    assert "handrail" in settings.read_text()
    assert not (reader.folder / "today.txt").exists(), "the page undoes its change"


def test_a_command_that_fails_is_seen(tmp_path: Path) -> None:
    reader = Reader(tmp_path, "unused")
    with pytest.raises(AssertionError, match="false"):
        reader.follow(Step("sh", "false"))


def test_only_the_installation_is_replaced() -> None:
    replaced = [step.text for step in STEPS if INSTALLS.fullmatch(step.text)]
    assert len(replaced) == 2, "one environment, and one installation into it"
    made, (pip, install, what) = shlex.split(replaced[0])[-1], shlex.split(replaced[1])
    assert (pip, install) == (f"{made}/bin/pip", "install")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(what.partition("[")[2].rstrip("]").split(",")) <= set(extras)


def test_the_page_has_the_blocks_that_this_test_knows() -> None:
    assert {kind for kind, _ in BLOCK.findall(README)} == {"text", "sh", "python"}
    assert README.count("```") == 2 * len(BLOCK.findall(README))
    assert [step.text for step in STEPS][-2:] == list(DEVELOPS)


def test_the_screen_is_a_real_prompt(tmp_path: Path) -> None:
    screen = next(text for kind, text in BLOCK.findall(README) if kind == "text")
    (tmp_path / "shop/src").mkdir(parents=True)
    for name, text in {
        "src/old.py": "a = 1\nb = 2\n",
        "src/total.py": "def total(x):\n\treturn x\n",
        "Makefile": "fmt:\n\t@rm src/old.py; echo 'RATE = 7' >src/tax.py; sed -i 's/\\t/    /' src/total.py\n"
        "\t@echo '1 file reformatted, 1 file left unchanged'\n",
    }.items():
        (tmp_path / "shop" / name).write_text(text)
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TERM": "xterm", "LANG": "C.UTF-8"}
    environment |= {"HANDRAIL_STATE_DIR": str(tmp_path / "state"), "PYTHONPATH": str(ROOT / "src")}
    _, name, *arguments = shlex.split(screen.splitlines()[0])
    assert name == "handrail"
    program = Program([sys.executable, "-m", "handrail", *arguments], tmp_path / "shop", environment, columns=80)
    try:
        program.terminal.sees("└")
        program.press_until(b"y", "✓ You kept make fmt")
        assert program.ends() == 0
        shown = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", program.terminal.shown)
    finally:
        program.close()
    expected = screen.splitlines()[1:]
    assert all(len(line) <= 80 for line in expected)
    lines = shown[shown.index("┌") :].replace("\r", "").split("\n")
    box = [line for line in lines if line][: len(expected)]
    assert [without_time(line) for line in box] == [without_time(line) for line in expected]


def without_time(line: str) -> str:
    return re.sub(r" +", " ", re.sub(r"in [\d.]+ s\.", "in 0.04 s.", line))
