"""The empty file and the empty folder are there for every command, also for the first ones of a state folder."""

import os
import threading
from pathlib import Path

from handrail.sandbox.bubblewrap import make_empty_placeholders


def test_commands_that_are_the_first_together_all_find_them(tmp_path: Path) -> None:
    """One process may start several at once, each in a thread of its own."""
    failures: list[OSError] = []

    def find(state: str) -> None:
        together.wait()
        try:
            make_empty_placeholders(state)
        except OSError as error:
            failures.append(error)

    for number in range(100):
        together, state = threading.Barrier(4), str(tmp_path / str(number))
        threads = [threading.Thread(target=find, args=(state,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(os.listdir(f"{state}/nothing")) == ["file", "folder"]
    assert failures == []
