"""The demo shows what it says, and leaves nothing behind."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.server.sockets import wait_until

import handrail
from people import Program

SOURCE = Path(handrail.__file__).parent.parent


DEMO = ("-m", "handrail", "demo")
WEAKER = (
    "-c",
    "import sys; from handrail.cli.usage import parse_arguments; from handrail.cli.commands.demo import play;"
    "sys.exit(play(parse_arguments('demo', ['--plain']), {'sandbox.tier': 2}))",
)


def make_environment(home: Path, **variables: str) -> dict[str, str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "TERM": "xterm"}
    return {**environment, "PYTHONPATH": str(SOURCE), **variables}


def play(folder: Path, program: tuple[str, ...] = DEMO, **variables: str) -> tuple[int, str, str]:
    """Plays the demo with a home and a folder for what is temporary of its own."""
    home, temporary = folder / "home", folder / "tmp"
    for one in (home, temporary):
        one.mkdir(exist_ok=True)
    environment = make_environment(home, TMPDIR=str(temporary), **variables)
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
        "✓ edit  cart.py",
        "⊘ read  .env: credentials may be neither read nor written (fs.secret)",
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
    assert played.count("┌ Permission") == played.count("the script presses this key") == 2


def test_a_weaker_sandbox_is_said_and_the_demo_still_holds(tmp_path: Path) -> None:
    code, out, _ = play(tmp_path, program=WEAKER)
    assert code == 0, out
    assert "there were no previews" in out
    assert not re.search(r"[┌│✓⊘]", out)


def test_it_ends_with_three_commands_to_try(played: str) -> None:
    end = played[played.index("That was the demo.") :].splitlines()
    assert end[0] == "That was the demo. Its folder was removed. Try:"
    assert [line.split()[:2] for line in end[1:]] == [["handrail", "demo"], ["handrail", "run"], ["handrail", "mcp"]]


@pytest.fixture
def at_a_terminal(tmp_path: Path) -> Iterator[Program]:
    program = Program([sys.executable, "-X", "utf8", *DEMO], tmp_path, make_environment(tmp_path))
    yield program
    program.close()


def test_at_a_terminal_the_person_answers(at_a_terminal: Program) -> None:
    terminal = at_a_terminal.terminal
    terminal.sees("Change cart.py?")
    at_a_terminal.press_until(b"y", "✓ edit  cart.py")
    terminal.sees("Keep these 2 changes with 1 deletion?")
    at_a_terminal.press_until(b"y", "changed 2 files (1 deleted)")
    assert not re.search("You (kept|allowed)", terminal.shown), "one line a call"
    assert at_a_terminal.ends() == 0
    assert "$ handrail undo --turn" in terminal.shown
    assert "the script presses this key" not in terminal.shown
    assert "That was the demo." in terminal.shown


def test_at_a_terminal_a_no_is_a_no(at_a_terminal: Program) -> None:
    terminal = at_a_terminal.terminal
    terminal.sees("Change cart.py?")
    at_a_terminal.press_until(b"n", "Why not")
    at_a_terminal.press_until(b"\r", "⊘ edit  cart.py: denied")
    assert at_a_terminal.ends() == 0
    assert "The model is scripted, so your answers do not change its words." in terminal.shown
    assert "You kept no change, so there is nothing to undo." in terminal.shown
    assert "$ handrail audit verify" in terminal.shown


def test_the_sample_project_can_be_kept_and_worked_with(tmp_path: Path) -> None:
    environment = make_environment(tmp_path / "home", CI="1")

    def run(*words: str, cwd: Path = tmp_path) -> tuple[int, str]:
        command = [sys.executable, "-X", "utf8", "-m", "handrail", *words]
        done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, check=False, timeout=120)
        return done.returncode, (done.stdout + done.stderr).decode()

    (tmp_path / "home").mkdir()
    code, text = run("demo", "--keep", "my shop")
    assert code == 0, text
    shop = tmp_path / "my shop"
    assert f"The project is in {shop}. Try:\n  cd '{shop}'\n  handrail log --changes\n" in text
    assert "+ 50) // 100" in (shop / "cart.py").read_text()
    entries = json.loads(run("log", "--session", "demo", "--json", cwd=shop)[1])["entries"]
    calls = [one for one in entries if one["kind"] == "call"]
    commands = [(one["decision"], one["outcome"].split(",")[0]) for one in calls if one["tool"] == "exec"]
    assert [one["decision"] for one in calls if one["subject"] == ".env"] == ["refused"]
    assert ([one["undo"] for one in calls if one["tool"] == "edit"], (shop / "prices.txt").exists()) == ([1], True)
    assert commands == [("not asked", "exit code 1"), ("asked", "exit code 0")]
    assert run("undo", "--turn", cwd=shop)[0] == 0
    assert ((shop / "prices.txt").exists(), (shop / "prices.old").exists()) == (False, True)
    assert "round(sum(prices)" in (shop / "cart.py").read_text()
    code, text = run("demo", "--keep", "my shop")
    assert (code, "is not empty. Nothing was written." in text) == (2, True)


def test_in_the_browser_the_person_answers(tmp_path: Path) -> None:
    """The browser itself is in tests/web."""
    environment = make_environment(tmp_path, TMPDIR=str(tmp_path), PYTHONUNBUFFERED="1")
    command = [sys.executable, *DEMO, "--web"]
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as demo:
        try:
            assert demo.stdout is not None
            url = urlsplit(demo.stdout.readline().strip())
            headers = {"Authorization": f"Bearer {url.fragment.removeprefix('token=')}"}
            with httpx2.Client(base_url=f"http://{url.netloc}", headers=headers, timeout=60) as client:
                wait_until(lambda: client.get("/api/inbox").json()["requests"])
                (waiting,) = client.get("/api/inbox").json()["requests"]
            assert waiting["request"]["sessionId"] == url.path.removeprefix("/tasks/")
            demo.send_signal(signal.SIGINT)
            assert demo.wait(60) == 0
        finally:
            demo.kill()
    assert os.listdir(tmp_path) == []
