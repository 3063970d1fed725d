"""The only files the command line opens: those it was told to read or write, and /dev/null."""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TextIO

from handrail.cli.exits import INFRASTRUCTURE, Stop


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


def read_given(path: str) -> bytes:
    """A file that a person named on the command line."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Stop(f"{path} cannot be read: {reason}. Nothing was run.") from None


def refuse_unwritable(path: str) -> None:
    """Stop where `-o` names what cannot be written, before anything is done for it."""
    folder = os.path.dirname(path) or "."
    if not path or os.path.isdir(path) or not os.path.isdir(folder):
        raise Stop(f"-o {path!r} names no file in a folder that is there. Nothing was run.")
    if not os.access(folder, os.W_OK):
        raise Stop(f"-o {path!r} cannot be written: the folder is not yours to write. Nothing was run.")


def write_whole(path: str, data: bytes) -> None:
    """Writes the file that `-o` names, whole or not at all; what is no file, such as /dev/stdout, is written to."""
    real = os.path.realpath(path)
    temporary = f"{real}.{os.urandom(6).hex()}.unfinished"
    try:
        if os.path.exists(real) and not os.path.isfile(real):
            with open(path, "wb") as file:
                file.write(data)
            return
        with open(temporary, "xb") as file:
            file.write(data)
        os.replace(temporary, real)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise Stop(f"-o {path!r} cannot be written: {error.strerror}", INFRASTRUCTURE) from None


def _private(path: str, flags: int) -> int:
    """Events hold whole arguments: a copy of them is as private as the journal."""
    return os.open(path, flags, 0o600)


def silence(stream: TextIO) -> None:
    """Nobody reads this stream any more: what is still in its buffer goes nowhere, also when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
