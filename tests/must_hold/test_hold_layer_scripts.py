"""What a script does to a tree directly, it does through a layer that is examined and kept; and undo takes it back.

Every script is made by its seed, and so is the tree that it begins with. Of both trees afterwards all is compared:
what there is, contents, modes, where links lead; of what was changed also which names are one file, extended
attributes, and dates that were set by hand; and what git says. After undo the tree is what it was at the start, all but
the dates.

What a layer cannot know, no script does, or is not compared:
- A folder of the tree cannot be renamed in one step there: programs are told that it is on another file system, and
  copy it, as `mv` does. A name in it of a file that has others outside is one of its own then; and what is closed to
  writing cannot be removed after it was copied.
- One of several names of a file that is moved, or replaced by the same content, is one of its own then or stays.
- What is written through one of several names of a file, which is then removed, is in the layer by no name.
- Extended attributes are kept with the content of a file. Where only they were changed, that is said, and not kept.
- To anybody but root, the layer does not keep the names of one file together: what is written through one of them is
  not seen through the others before it is kept, and a name that is replaced cannot be told from one written through.

Everyday some scripts are run, with HANDRAIL_DEEP=1 all: by root and by an ordinary user, each where there is one.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.escape.starting import ordinary_number, python_for

DEEP = os.environ.get("HANDRAIL_DEEP", "") not in {"", "0"}
SCRIPTS = 250 if DEEP else 8
PATIENCE = 1200
USERS = ("root", "ordinary")
PART = Path(__file__).with_name("layer_part.py")
REPOSITORY = Path(__file__).parents[2]


class Part:
    """Scripts that one user runs, in a process of that user."""

    def __init__(self, user: str) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="handrail-scripts-", dir="/tmp"))
        number = ordinary_number() if user == "ordinary" and os.geteuid() == 0 else None
        if number is not None:
            os.chown(self.place, number, number)
        self._told, self._said = self.place / "told", self.place / "said"
        with self._told.open("wb") as told, self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [python_for(number), str(PART), str(self.place), "0", str(SCRIPTS)],
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=said,
                cwd=self.place,
                env=self._environment(),
                **({} if number is None else {"user": number, "group": number, "extra_groups": []}),
            )

    def outcomes(self) -> list[dict[str, Any]]:
        """Waits for the end; an AssertionError where it came too soon, or not in time."""
        code = self.process.wait(PATIENCE)
        found = [json.loads(line) for line in self._told.read_bytes().splitlines()]
        assert code == 0, f"after {found[-1]['seed'] if found else 'nothing'}: {self._said.read_text()}"
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        subprocess.run(["chmod", "-R", "u+rwX", str(self.place)], check=False)
        shutil.rmtree(self.place)

    def _environment(self) -> dict[str, str]:
        folders = [str(REPOSITORY), str(REPOSITORY / "src"), *(path for path in sys.path if "site-packages" in path)]
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self.place / "home"),
            "LANG": "C.UTF-8",
            "PYTHONPATH": ":".join(folders),
            "PYTHONDONTWRITEBYTECODE": "1",
        }


@pytest.fixture(scope="module")
def parts() -> Iterator[dict[str, Part]]:
    """Both users at the same time; one of them where the other cannot be had."""
    started: dict[str, Part] = {}
    try:
        for user in USERS:
            if cannot(user) is None:
                started[user] = Part(user)
        yield started
    finally:
        for part in started.values():
            part.close()


@pytest.mark.parametrize("user", USERS)
def test_a_script_leaves_the_same_through_a_layer_and_undo_takes_it_back(
    parts: dict[str, Part], user: str, note: Callable[[str], None]
) -> None:
    if reason := cannot(user):
        pytest.skip(reason)
    outcomes = parts[user].outcomes()
    if reason := outcomes[0].get("reason"):
        pytest.skip(f"no layer can be had here: {reason}")
    wrong = [f"seed {one['seed']}, {one['way']}: {told}" for one in outcomes for told in one["wrong"]]
    note(f"{len(outcomes)} scripts: {dict(Counter(one['way'] for one in outcomes))}")
    assert len(outcomes) == SCRIPTS
    assert not wrong, "\n".join(wrong[:100])


def cannot(user: str) -> str | None:
    """Why scripts of this user cannot be run here."""
    if user == "root":
        return None if os.geteuid() == 0 else "scripts of root are run only where the tests run as root"
    if os.geteuid() != 0 or python_for(ordinary_number()):
        return None
    return "no Python with our libraries can be run by an ordinary user here"
