"""The records of both corpora, and the rule by which a record is in the half one looks at or in the other."""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

Half = Literal["seen", "held_out"]
HALVES: tuple[Half, ...] = ("seen", "held_out")
Effect = Literal["writes", "deletes", "executes", "connects"]


class Attack(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command that does more than read."""

    text: str
    program: str
    """The program that is abused; `bash` where it is the shell's own syntax."""
    effect: Effect
    """What can be seen to happen in the scratch workspace."""
    source: str
    """Whose idea it is: a name in README.md."""
    terminal: bool = False
    """Whether the effect shows only where the output is a terminal, as with pagers."""
    replaced: tuple[str, ...] = ()
    """Programs in whose place the canary stands: what is started shows itself."""


class Everyday(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An ordinary command that only reads."""

    text: str
    source: str
    status: int = 0
    """With what it ends; grep and diff say something with 1."""


Record = TypeVar("Record", Attack, Everyday)


def half_of(text: str) -> Half:
    """By the first bit of the text's SHA-256: nobody chooses."""
    return "held_out" if hashlib.sha256(text.encode()).digest()[0] & 0x80 else "seen"


@lru_cache
def attacks(half: Half) -> tuple[Attack, ...]:
    """The attacks of one half, in the order of the file."""
    return _read(f"attacks_{half}.jsonl", Attack)


@lru_cache
def everyday(half: Half) -> tuple[Everyday, ...]:
    """The everyday commands of one half."""
    return _read(f"everyday_{half}.jsonl", Everyday)


def todays(records: tuple[Record, ...], deep: bool) -> tuple[Record, ...]:
    """Those that are tried out: all in a deep run; every day the first of each kind and a fifth of the rest."""
    first: dict[tuple[object, ...], Record] = {}
    for one in records:
        first.setdefault(_kind(one), one)
    return tuple(one for one in records if deep or first[_kind(one)] is one or _drawn(one.text))


def _kind(record: Attack | Everyday) -> tuple[object, ...]:
    if isinstance(record, Attack):
        return (record.program, record.effect, record.terminal, bool(record.replaced))
    return (record.source, record.status)


def _drawn(text: str) -> bool:
    return hashlib.sha256(text.encode()).digest()[1] < 256 // 5


def _read(name: str, kind: type[Record]) -> tuple[Record, ...]:
    lines = (Path(__file__).parent / name).read_bytes().splitlines()
    return tuple(msgspec.json.decode(line, type=kind) for line in lines)
