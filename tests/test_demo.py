"""The demo shows what it says, and leaves nothing behind."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import handrail

SOURCE = Path(handrail.__file__).parent.parent


DEMO = ("-m", "handrail", "demo")
WEAKER = (
    "-c",
    "import sys; from handrail.cli.usage import parse_arguments; from handrail.cli.commands.demo import play;"
    "sys.exit(play(parse_arguments('demo', ['--plain']), {'sandbox.tier': 2}))",
)


def play(folder: Path, program: tuple[str, ...] = DEMO, **variables: str) -> tuple[int, str, str]:
    """Plays the demo with a home and a folder for what is temporary of its own."""
    home, temporary = folder / "home", folder / "tmp"
    for one in (home, temporary):
        one.mkdir(exist_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "TERM": "xterm",
    }
    environment |= {"PYTHONPATH": str(SOURCE), **variables}
    command = [sys.executable, "-X", "utf8", *program]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=False, timeout=120)
    assert (os.listdir(temporary), os.listdir(home)) == ([], [])
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the demo prints, under CI."""
    code, out, err = play(tmp_path_factory.mktemp("demo"), CI="1")
    assert (code, err) == (0, ""), out
    return out


@pytest.mark.parametrize(
    "words",
    [
        "the model is scripted",
        "exit code 1",
        "✓ You allowed Edit cart.py once",
        "⊘ read  .env: credentials are neither read nor written (fs.secret)",
        "$ python3 -B -m unittest -q && ./prices.sh",
        "    not asked: the preview changed nothing",
        "│ Change cart.py?",
        "│ Keep these 2 changes with 1 deletion?",
        "6 calls, 2 kept, 1 denied",
        "$ handrail log --changes",
        "$ handrail diff",
        "-    return round(sum(prices) * (100 - discount) / 100)",
        "$ handrail undo --turn",
        "the tests fail again (exit 1)",
        "$ handrail redo",
        "$ handrail audit verify",
        "records intact",
    ],
)
def test_what_there_is_to_see_is_shown(played: str, words: str) -> None:
    assert words in played


def test_every_answer_is_said_to_be_the_scripts(played: str) -> None:
    assert played.count("┌ Permission") == played.count("in the demo the script does") == 2


def test_a_weaker_sandbox_is_said_and_the_demo_still_holds(tmp_path: Path) -> None:
    code, out, _ = play(tmp_path, program=WEAKER)
    assert code == 0, out
    assert "not tried first" in out
    assert not re.search(r"[┌│✓⊘]", out)
