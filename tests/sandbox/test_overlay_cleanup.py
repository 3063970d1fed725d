"""What is removed later is removed, whatever else goes on, and Python does not end before."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from handrail.sandbox.overlay import overlay as overlays
from handrail.sandbox.overlay.overlay import Overlay

_ENDS_AT_ONCE = """
import sys
from pathlib import Path
from handrail.sandbox.overlay.overlay import Overlay
for name in "abc":
    overlay = Overlay(sys.argv[1] + "/" + name, (sys.argv[2],))
    for number in range(500):
        (Path(overlay.overlaid[0].upper) / str(number)).mkdir()
    overlay.remove_later()
"""


def make_overlay(folder: Path) -> Overlay:
    (folder / "root").mkdir()
    return Overlay(str(folder / "overlay"), (str(folder / "root"),))


def test_what_is_to_be_removed_can_be_waited_for(tmp_path: Path) -> None:
    overlay = make_overlay(tmp_path)
    overlay.remove_later()
    overlay.wait()
    assert not os.path.exists(overlay.folder)


def test_without_room_for_a_thread_it_is_removed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    overlay = make_overlay(tmp_path)
    monkeypatch.setattr(threading.Thread, "start", fail)
    overlay.remove_later()
    assert not os.path.exists(overlay.folder)
    overlay.wait()


def test_python_does_not_end_before_all_is_removed(tmp_path: Path) -> None:
    (tmp_path / "overlays").mkdir()
    (tmp_path / "root").mkdir()
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", _ENDS_AT_ONCE, str(tmp_path / "overlays"), str(tmp_path / "root")]
    subprocess.run(words, env=environ, check=True, timeout=60)
    assert not list((tmp_path / "overlays").iterdir())


def test_a_forked_process_waits_for_nothing_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overlay, begun, go_on = make_overlay(tmp_path), threading.Event(), threading.Event()

    def remove(_: str) -> None:
        begun.set()
        go_on.wait()

    monkeypatch.setattr(overlays, "remove_folder", remove)
    overlay.remove_later()
    begun.wait()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            overlay.wait()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    go_on.set()
    overlay.wait()
