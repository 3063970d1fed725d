"""The hosts that a command needs: those that its words name, and those that its programs are known to reach.

A person's yes opens just these to it. So what is not certain is no host: it is told, with the word that it stands in.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from handrail.policy.commands.reader import read_command
from handrail.policy.commands.targets import base_name
from handrail.policy.network.addresses import Named, named_bare, named_by, named_over_ssh
from handrail.policy.network.git import Remote, git_reach
from handrail.policy.network.hosts import shown
from handrail.policy.network.programs import NOT_CARRIED, REACHES, Reach
from handrail.policy.network.sorting import sorted_words
from handrail.policy.script import as_simple, read_script, start_of, with_inner
from handrail.policy.shell.script import Outside
from handrail.policy.tables.network_groups import FETCHING
from handrail.protocol.decision import SeenCommand

Words = tuple[str, ...]

MOST_HOSTS = 50
"""Of one command; who names more is told so, and is best listed in the settings."""
_MOST_UNOPENED = 10
_METHOD = re.compile(r"[A-Z]+")
_VERSION = re.compile(r"(?<=[a-z])[0-9][0-9.]*\Z")
_ANY = Reach()


class Needs(msgspec.Struct, frozen=True):
    """What a command needs of the network."""

    hosts: tuple[str, ...] = ()
    """`example.org:443`"""
    unopened: tuple[str, ...] = ()
    """What looks like a host and cannot be opened, each with the reason in words."""
    remotes: tuple[Remote, ...] = ()
    """Remotes of repositories, whose URLs have to be looked up."""


def needs_of(text: str, cwd: str, there: Words = (), seen: tuple[SeenCommand, ...] | None = None) -> Needs:
    """The needs of a command that starts in a folder; `seen`: what the display parser found in it."""
    read = [(words, folder, True) for words, folder in _read(text, cwd, there)]
    read += [(words, folder, False) for words, folder in _seen(seen or (), cwd)]
    found = [one for words, folder, literal in read for one in _of_command(words, folder, literal=literal)]
    named = [one for one in found if isinstance(one, Named)]
    return with_named(Needs(remotes=tuple(dict.fromkeys(one for one in found if isinstance(one, Remote)))), named)


def with_urls(needs: Needs, urls: Iterable[str]) -> Needs:
    """The needs with what the URLs of remotes name."""
    return with_named(needs, [one for url in urls if (one := named_by(url) or named_over_ssh(url)) is not None])


def with_named(needs: Needs, named: Iterable[Named]) -> Needs:
    """The needs with more of them, each once, and no more than a person can look at."""
    added = list(named)
    hosts = tuple(dict.fromkeys([*needs.hosts, *(one.host for one in added if one.host)]))
    unopened = tuple(dict.fromkeys([*needs.unopened, *(one.unopened for one in added if one.unopened)]))
    if len(hosts) > MOST_HOSTS:
        unopened = (f"{len(hosts) - MOST_HOSTS} hosts more than the {MOST_HOSTS} that a yes can open", *unopened)
    return Needs(hosts[:MOST_HOSTS], unopened[:_MOST_UNOPENED], needs.remotes)


def _read(text: str, cwd: str, there: Words) -> Iterator[tuple[Words, str | None]]:
    """The simple commands that are not proven, each with the folder that it runs in where that is certain."""
    steps = read_script(text, cwd, there)
    for step in () if isinstance(steps, Outside) else steps:
        if step.reading.effect != "proven":
            folder = step.folders[0] if len(step.folders) == 1 else None
            yield step.words, folder
            yield from ((one.words, folder) for one in step.inner if not _is_again(one.words, step.words))


def _seen(seen: tuple[SeenCommand, ...], cwd: str) -> Iterator[tuple[Words, str | None]]:
    """Those that the display parser found."""
    folder = start_of(seen, cwd)
    for outer in seen:
        yield outer.words, folder
        inner = list(with_inner((outer,)))[1:]
        yield from ((one.words, folder) for one in inner if not _is_again(one.words, outer.words))


def _is_again(inner: Words, outer: Words) -> bool:
    """Whether it is the same git command without the options before its sub-command, which say where it runs."""
    return inner[:1] == ("git",) and base_name(outer[0]) == "git" and outer[-len(inner) + 1 :] == inner[1:]


def _of_command(words: Words, folder: str | None, *, literal: bool) -> Iterator[Named | Remote]:
    """`literal`: nothing in the words is left to expand, so that one without a scheme can be an address too."""
    if not words or not words[0]:
        return
    name = base_name(words[0])
    if name == "git":
        found = git_reach(words, folder)
        yield from (*found.named, *found.remotes)
    elif _reaches(name, words):
        yield from _of_program(name, words[1:], literal=literal)


def _reaches(name: str, words: Words) -> bool:
    """Whether a command is one that reaches other machines, wherever its sub-command stands."""
    if read_command(as_simple(words)).effect == "network":
        return True
    fetching = FETCHING.get(_VERSION.sub("", name), "").split()
    return next((word for word in words[1:] if not word.startswith("-") and "://" not in word), "") in fetching


def _of_program(name: str, rest: Words, *, literal: bool) -> Iterator[Named]:
    if rest[:2] == ("-m", "pip"):
        name, rest = "pip", rest[2:]
    if name in NOT_CARRIED:
        yield Named(unopened=f"{name} does not speak http, so it runs without network")
        return
    plain = name if name in REACHES else _VERSION.sub("", name)
    reach = REACHES.get(f"{plain} {rest[0] if rest else ''}") or REACHES.get(plain, _ANY)
    yield from _of_reach(reach, rest, literal=literal)


def _of_reach(reach: Reach, rest: Words, *, literal: bool) -> Iterator[Named]:
    options, operands = sorted_words(reach, rest)
    instead = [value for option, value in options if option in reach.instead.split()]
    if not instead and not {option for option, _ in options} & set(reach.without.split()):
        yield from map(Named, reach.hosts.split())
    for option, value in options:
        if option in reach.proxies.split():
            yield Named(unopened=f"the proxy {option} names, which nothing leads to")
        elif option in reach.instead.split():
            yield named_by(value) or Named(unopened=f"what {option} names: {shown(value)}")
        elif option not in reach.beside.split():
            yield from _one(named_by(value))
    yield from _of_operands(reach, operands, literal=literal)


def _of_operands(reach: Reach, operands: list[str], *, literal: bool) -> Iterator[Named]:
    if not reach.bare or not literal:
        yield from (one for word in operands for one in _one(named_by(word)))
        return
    if reach.first:
        operands = operands[1:2] if operands and _METHOD.fullmatch(operands[0]) else operands[:1]
    yield from (named_bare(word, reach.bare) for word in operands)


def _one(named: Named | None) -> tuple[Named, ...]:
    return () if named is None else (named,)
