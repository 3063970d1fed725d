"""The hosts that a command needs: those that its words name, and those that its programs are known to reach.

A person's yes opens just these to it. So what is not certain is no host: it is told, with the word that it stands in.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from handrail.policy.commands.reader import classify
from handrail.policy.commands.targets import to_base_name
from handrail.policy.network.addresses import HostMention, parse_bare_mention, parse_ssh_mention, parse_url_mention
from handrail.policy.network.git import Remote, find_git_reach
from handrail.policy.network.hosts import render_untrusted
from handrail.policy.network.programs import NOT_CARRIED, REACHES, Reach
from handrail.policy.network.sorting import split_network_options
from handrail.policy.script import build_simple_command, expand_inner_commands, find_start_folder, parse_steps
from handrail.policy.shell.script import Unparsed
from handrail.policy.tables.network_groups import FETCHING
from handrail.protocol.decision import DisplayedCommand

Words = tuple[str, ...]

MAX_HOSTS = 50
"""Of one command; who names more is told so, and is best listed in the settings."""
_MAX_UNOPENED_HOSTS = 10
_METHOD = re.compile(r"[A-Z]+")
_VERSION = re.compile(r"(?<=[a-z])[0-9][0-9.]*\Z")
_ANY = Reach()


class NetworkNeeds(msgspec.Struct, frozen=True):
    """What a command needs of the network."""

    hosts: tuple[str, ...] = ()
    """`example.org:443`"""
    unreachable: tuple[str, ...] = ()
    """What looks like a host and cannot be opened, each with the reason in words."""
    remotes: tuple[Remote, ...] = ()
    """Remotes of repositories, whose URLs have to be looked up."""


def find_network_needs(
    text: str, cwd: str, there: Words = (), seen: tuple[DisplayedCommand, ...] | None = None
) -> NetworkNeeds:
    """The needs of a command that starts in a folder; `seen`: what the display parser found in it."""
    read = [(words, folder, True) for words, folder in _read(text, cwd, there)]
    read += [(words, folder, False) for words, folder in _seen(seen or (), cwd)]
    found = [one for words, folder, literal in read for one in _of_command(words, folder, literal=literal)]
    named = [one for one in found if isinstance(one, HostMention)]
    return add_mentions(
        NetworkNeeds(remotes=tuple(dict.fromkeys(one for one in found if isinstance(one, Remote)))), named
    )


def add_remote_urls(needs: NetworkNeeds, urls: Iterable[str]) -> NetworkNeeds:
    """The needs with what the URLs of remotes name."""
    return add_mentions(
        needs, [one for url in urls if (one := parse_url_mention(url) or parse_ssh_mention(url)) is not None]
    )


def add_mentions(needs: NetworkNeeds, named: Iterable[HostMention]) -> NetworkNeeds:
    """The needs with more of them, each once, and no more than a person can look at."""
    added = list(named)
    hosts = tuple(dict.fromkeys([*needs.hosts, *(one.host for one in added if one.host)]))
    unopened = tuple(dict.fromkeys([*needs.unreachable, *(one.unreachable for one in added if one.unreachable)]))
    if len(hosts) > MAX_HOSTS:
        unopened = (f"{len(hosts) - MAX_HOSTS} hosts more than the {MAX_HOSTS} that a yes can open", *unopened)
    return NetworkNeeds(hosts[:MAX_HOSTS], unopened[:_MAX_UNOPENED_HOSTS], needs.remotes)


def _read(text: str, cwd: str, there: Words) -> Iterator[tuple[Words, str | None]]:
    """The simple commands that are not proven, each with the folder that it runs in where that is certain."""
    steps = parse_steps(text, cwd, there)
    for step in () if isinstance(steps, Unparsed) else steps:
        if step.reading.effect != "proven":
            folder = step.folders[0] if len(step.folders) == 1 else None
            yield step.words, folder
            yield from ((one.words, folder) for one in step.inner if not _is_again(one.words, step.words))


def _seen(seen: tuple[DisplayedCommand, ...], cwd: str) -> Iterator[tuple[Words, str | None]]:
    """Those that the display parser found."""
    folder = find_start_folder(seen, cwd)
    for outer in seen:
        yield outer.words, folder
        inner = list(expand_inner_commands((outer,)))[1:]
        yield from ((one.words, folder) for one in inner if not _is_again(one.words, outer.words))


def _is_again(inner: Words, outer: Words) -> bool:
    """Whether it is the same git command without the options before its sub-command, which say where it runs."""
    return inner[:1] == ("git",) and to_base_name(outer[0]) == "git" and outer[-len(inner) + 1 :] == inner[1:]


def _of_command(words: Words, folder: str | None, *, literal: bool) -> Iterator[HostMention | Remote]:
    """`literal`: nothing in the words is left to expand, so that one without a scheme can be an address too."""
    if not words or not words[0]:
        return
    name = to_base_name(words[0])
    if name == "git":
        found = find_git_reach(words, folder)
        yield from (*found.named, *found.remotes)
    elif _reaches(name, words):
        yield from _of_program(name, words[1:], literal=literal)


def _reaches(name: str, words: Words) -> bool:
    """Whether a command is one that reaches other machines, wherever its sub-command stands."""
    if classify(build_simple_command(words)).effect == "network":
        return True
    fetching = FETCHING.get(_VERSION.sub("", name), "").split()
    return next((word for word in words[1:] if not word.startswith("-") and "://" not in word), "") in fetching


def _of_program(name: str, rest: Words, *, literal: bool) -> Iterator[HostMention]:
    if rest[:2] == ("-m", "pip"):
        name, rest = "pip", rest[2:]
    if name in NOT_CARRIED:
        yield HostMention(unreachable=f"{name} does not speak http, so it runs without network")
        return
    plain = name if name in REACHES else _VERSION.sub("", name)
    reach = REACHES.get(f"{plain} {rest[0] if rest else ''}") or REACHES.get(plain, _ANY)
    yield from _of_reach(reach, rest, literal=literal)


def _of_reach(reach: Reach, rest: Words, *, literal: bool) -> Iterator[HostMention]:
    options, operands = split_network_options(reach, rest)
    instead = [value for option, value in options if option in reach.instead.split()]
    if not instead and not {option for option, _ in options} & set(reach.without.split()):
        yield from map(HostMention, reach.hosts.split())
    for option, value in options:
        if option in reach.proxies.split():
            yield HostMention(unreachable=f"the proxy {option} names, which nothing leads to")
        elif option in reach.instead.split():
            yield parse_url_mention(value) or HostMention(unreachable=f"what {option} names: {render_untrusted(value)}")
        elif option not in reach.beside.split():
            yield from _one(parse_url_mention(value))
    yield from _of_operands(reach, operands, literal=literal)


def _of_operands(reach: Reach, operands: list[str], *, literal: bool) -> Iterator[HostMention]:
    if not reach.bare or not literal:
        yield from (one for word in operands for one in _one(parse_url_mention(word)))
        return
    if reach.first:
        operands = operands[1:2] if operands and _METHOD.fullmatch(operands[0]) else operands[:1]
    yield from (parse_bare_mention(word, reach.bare) for word in operands)


def _one(named: HostMention | None) -> tuple[HostMention, ...]:
    return () if named is None else (named,)
