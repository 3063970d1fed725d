"""The same task with a real model, for who has a key and says so."""

import os
import sys
import termios
from argparse import Namespace

from handrail.cli.demonstration.folder import sample_folder
from handrail.cli.demonstration.sample import TASK
from handrail.cli.exits import OK
from handrail.cli.main import run as run_words
from handrail.cli.output import note
from handrail.settings import load
from handrail.terminal.asking import somebody_is_there


def offer(options: Namespace) -> int:
    """Runs the task for real, if a key is set and the person wants it; the exit code."""
    key = _key()
    if key is None or not sys.stdout.isatty() or not somebody_is_there():
        return OK
    name = _wanted(key, load(os.environ, {}).settings.model)
    if not name:
        return OK
    with sample_folder():
        plain = ["--plain"] if options.plain else []
        return run_words(["run", TASK, "--model", name, *plain])


def _wanted(key: str, chosen: str | None) -> str:
    """The model that the person wants; empty where they want none, which is what Enter says."""
    termios.tcflush(sys.stdin, termios.TCIFLUSH)  # what was typed while the demo played was for nobody
    cost = "it sends the sample to the provider, and costs a little"
    if chosen is not None:
        note(f"{key} is set. The same task for real, with {chosen} ({cost})? y or Enter for no:")
        return chosen if sys.stdin.readline().strip().lower() in {"y", "yes"} else ""
    note(f"{key} is set. The same task for real ({cost})? Type a model, such as {_example(key)}, or Enter for no:")
    return sys.stdin.readline().strip()


def _key() -> str | None:
    """The variable of a provider's key that is set."""
    from handrail.models.providers import PROVIDERS  # noqa: PLC0415  the demo itself needs no provider

    names = [name for one in PROVIDERS.values() for name in one.keys]
    return next((name for name in names if os.environ.get(name, "").strip()), None)


def _example(key: str) -> str:
    """How a model of the key's provider is spelled."""
    from handrail.models.providers import PROVIDERS  # noqa: PLC0415  as above

    return f"{next(one.name for one in PROVIDERS.values() if key in one.keys)}:NAME"
