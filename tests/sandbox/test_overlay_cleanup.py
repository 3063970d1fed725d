"""What is removed later is removed, whatever else goes on, and Python does not end before."""

import os
import subprocess
import sys
import threading
from pathlib import Path

from handrail.sandbox.overlay.overlay import remove_later, wait_for_all

_ENDS_AT_ONCE = """
import sys, threading
from pathlib import Path
from handrail.sandbox.overlay.overlay import remove_later
begun = threading.Event()
def work():
    begun.set()
    for path in sorted(Path(sys.argv[1]).iterdir()):
        path.rmdir()
for _ in range(3):
    remove_later(work)
begun.wait()
"""


def test_what_is_to_be_removed_is_done_in_turn_and_can_be_waited_for() -> None:
    done: list[int] = []
    removals = [remove_later(lambda number=number: done.append(number)) for number in range(50)]
    assert removals[-1] is not None
    removals[-1].wait()
    assert done == list(range(50))


def test_one_thread_serves_for_all_and_what_fails_does_not_end_it() -> None:
    def fail() -> None:
        raise OSError("cannot be removed")

    failed = remove_later(fail)
    after = remove_later(lambda: None)
    assert failed is not None
    assert after is not None
    after.wait()
    assert failed.done.is_set()
    assert failed.thread is after.thread


def test_python_does_not_end_before_all_is_removed(tmp_path: Path) -> None:
    for number in range(500):
        (tmp_path / str(number)).mkdir()
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", _ENDS_AT_ONCE, str(tmp_path)], env=environ, check=True, timeout=60)
    assert not list(tmp_path.iterdir())


def test_a_forked_process_waits_for_nothing_of_its_parent_and_has_a_thread_of_its_own() -> None:
    go_on = threading.Event()
    removal = remove_later(go_on.wait)
    assert removal is not None
    child = os.fork()
    if child == 0:
        code = 1
        try:
            removal.wait()
            wait_for_all()
            done = threading.Event()
            own = remove_later(done.set)
            if own is not None:
                own.wait()
            code = 0 if done.is_set() and not removal.done.is_set() else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    go_on.set()
    removal.wait()
