"""The only files the command line opens: those it was told to write, and /dev/null."""

import os
from collections.abc import Iterable
from typing import TextIO

from handrail.cli.exits import Stop


class OutFolder:
    """A folder named by --out. It is the person's own: made when missing, files written over, owner only."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._begun: set[str] = set()

    def write(self, name: str, data: bytes) -> None:
        """Writes one file."""
        self._begun.discard(name)
        self.add(name, (data,))

    def add(self, name: str, chunks: Iterable[bytes]) -> None:
        """Writes to a file, after what was written to it before by this object, and over everything else."""
        path = os.path.join(self.path, name)
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with open(path, "ab" if name in self._begun else "wb", opener=_private) as file:
                file.writelines(chunks)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise Stop(f"{path} cannot be written: {reason}. Name another folder with --out.") from None
        self._begun.add(name)


def _private(path: str, flags: int) -> int:
    """Events hold whole arguments: a copy of them is as private as the journal."""
    return os.open(path, flags, 0o600)


def silence(stream: TextIO) -> None:
    """Nobody reads this stream any more: what is still in its buffer goes nowhere, also when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
