"""A case: a file, an edit as a model sent it, and what the file may be afterwards."""

import codecs
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

Encoding = Literal["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1"]
_MARKS = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


class UnusableError(Exception):
    """What was named is no file of cases, or nothing that cases can be made of."""


class Splice(NamedTuple):
    """Characters of a file, from `start` to before `end`, and what takes their place."""

    start: int
    end: int
    text: str


Splices = tuple[Splice, ...]


class Expectation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether the edit is to be applied; any one of these results is right."""

    type: Literal["apply", "refuse"]
    splices: tuple[Splices, ...] = ()


class Case(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One line of a file of cases."""

    id: str
    kind: str
    path: str
    file: str
    old: str
    new: str
    expect: Expectation
    encoding: Encoding = "utf-8"
    """How the text of the file becomes its bytes; "latin-1" also where they are in no encoding."""
    replace_all: bool = False
    repository: str = ""
    language: str = ""
    commit: str = ""

    @property
    def positive(self) -> bool:
        return self.expect.type == "apply"

    @property
    def before(self) -> bytes:
        return encoded(self.file, self.encoding)

    @property
    def right(self) -> list[bytes]:
        """What the file may be afterwards."""
        if not self.positive:
            return [self.before]
        return [encoded(spliced(self.file, splices), self.encoding) for splices in self.expect.splices]


def encoded(text: str, encoding: Encoding) -> bytes:
    return _MARKS.get(encoding, b"") + text.encode(encoding)


def spliced(text: str, splices: Splices) -> str:
    for start, end, new in sorted(splices, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def write_cases(path: Path, cases: Iterable[Case]) -> int:
    """Writes them, one in a line; how many they were."""
    count = 0
    with path.open("wb") as out:
        for case in cases:
            out.write(msgspec.json.encode(case) + b"\n")
            count += 1
    return count


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file; UnusableError at the first line that is none."""
    decoder = msgspec.json.Decoder(Case)
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                if line.strip():
                    yield decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                message = f"line {number} of {path} is no case, make the file anew: {error}"
                raise UnusableError(message) from None
