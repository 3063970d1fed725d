"""Starts the part that runs attacks: as root, or as an ordinary user, with a terminal of its own."""

import contextlib
import json
import os
import pty
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
from tests.escape.case import Outcome, User

_REPOSITORY = Path(__file__).parents[2]
_PART = Path(__file__).with_name("part.py")
_ORDINARY = range(61_500, 61_600)
# It dies with whoever started it, and then is the part itself.
_BEGINNING = (
    "import ctypes, runpy, sys; ctypes.CDLL(None).prctl(1, 9); del sys.argv[0]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


class Part:
    """Attacks that one user makes, one after the other, in a process of that user."""

    def __init__(self, user: User, runs: list[tuple[int, list[str]]]) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="handrail-escape-", dir="/tmp"))
        self._place.chmod(0o755)
        number = None if user == "root" or os.geteuid() != 0 else ordinary_number()
        if number is not None:
            os.chown(self._place, number, number)
        self._plan = self._place / "plan.json"
        self._outcomes = self._place / "outcomes.jsonl"
        self._said = self._place / "said.txt"
        self._plan.write_text(json.dumps({"place": str(self._place), "outcomes": str(self._outcomes), "runs": runs}))
        self._terminal, self._process = self._start(number)

    def outcomes(self, seconds: float) -> list[Outcome]:
        """Waits for the end; an AssertionError where it came too soon, or not in time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        said = self._said.read_text()
        lines = self._outcomes.read_bytes().splitlines() if self._outcomes.exists() else []
        found = [msgspec.json.decode(line, type=Outcome) for line in lines]
        assert self._process.returncode == 0, f"after {found[-1].id if found else 'nothing'}: {said}"
        return found

    def close(self) -> None:
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)
        shutil.rmtree(self._place, ignore_errors=True)

    def _start(self, number: int | None) -> tuple[int, "subprocess.Popen[bytes]"]:
        leader, follower = pty.openpty()
        name = os.ttyname(follower)
        if number is not None:
            os.chown(name, number, number)
        # The first terminal that the leader of a new session opens becomes its own.
        begin = f"import os; os.setsid(); os.open({name!r}, os.O_RDWR); "
        identity = {} if number is None else {"user": number, "group": number, "extra_groups": []}
        with self._said.open("w") as said:
            process = subprocess.Popen(
                [python_for(number), "-c", begin + _BEGINNING, str(_PART), str(self._plan)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                cwd=self._place,
                env=self._environment() | {"TERMINAL_NAME": name},
                **identity,
            )
        os.close(follower)
        return leader, process

    def _environment(self) -> dict[str, str]:
        folders = [str(_REPOSITORY), str(_REPOSITORY / "src"), *(path for path in sys.path if "site-packages" in path)]
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self._place / "home"),
            "USER": "somebody",
            "LANG": "C.UTF-8",
            "PYTHONPATH": ":".join(folders),
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def ordinary_number() -> int:
    """A user number that nobody has."""
    for number in _ORDINARY:
        with contextlib.suppress(KeyError):
            pwd.getpwuid(number)
            continue
        return number
    raise AssertionError(f"all user numbers of {_ORDINARY} are somebody's")


def python_for(number: int | None) -> str:
    """A Python that this user may run and that can use our libraries: this one, or the system's of the same version."""
    if number is None:
        return sys.executable
    for python in (sys.executable, "/usr/bin/python3"):
        if _can_run(python, number):
            return python
    return ""


def _can_run(python: str, number: int) -> bool:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    test = f"import sys; assert sys.version.startswith('{version}.'); sys.path[:0] = {sys.path!r}; import msgspec, yaml"
    folders = os.access(_REPOSITORY, os.X_OK)
    try:
        done = subprocess.run(
            [python, "-c", test], user=number, group=number, extra_groups=[], capture_output=True, cwd="/", check=False
        )
    except OSError:
        return False
    return folders and done.returncode == 0
