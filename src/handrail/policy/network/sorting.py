"""Sorts the words of a program that fetches into options and operands, leniently: nothing is proven by it."""

from collections.abc import Iterator

from handrail.policy.network.programs import Reach


def split_network_options(reach: Reach, words: tuple[str, ...]) -> tuple[list[tuple[str, str]], list[str]]:
    """The options with their values, and the operands, read leniently: what is not known has no value."""
    valued = {*reach.instead.split(), *reach.proxies.split(), *reach.beside.split()}
    options: list[tuple[str, str]] = []
    operands: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            operands += rest
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            options.append((name, value if equals or name not in valued else next(rest, "")))
        elif word.startswith("-") and len(word) > 1:
            options.append(_short_option(word, valued, rest))
        else:
            operands.append(word)
    return options, operands


def _short_option(word: str, valued: set[str], rest: Iterator[str]) -> tuple[str, str]:
    """`-i URL`, `-iURL`, `-sSo file`: the first letter that takes a value ends a bundle."""
    for place, letter in enumerate(word[1:], 1):
        if f"-{letter}" in valued:
            return f"-{letter}", word[place + 1 :] or next(rest, "")
    return word, ""
