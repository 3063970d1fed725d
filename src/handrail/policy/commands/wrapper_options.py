"""Where the options of a wrapper end, and what their values are."""

import re
from collections.abc import Iterator

from handrail.policy.commands.wrappers import Wrapper

Words = tuple[str, ...]

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")


def skip_options(words: Words, wrapper: Wrapper) -> Words:
    """What is left behind the options and the operands of a wrapper's own."""
    skipped, place = wrapper.skipped, 0
    while skipped is not None and place < len(words):
        word = words[place]
        if word in wrapper.silent.split():
            break
        if word == "--":
            return words[place + 1 + skipped :]
        if word.startswith("-"):
            place += _values_behind(word, wrapper)
        elif wrapper.assigns and ASSIGNMENT.match(word):
            pass
        elif skipped == 0:
            return words[place:]
        else:
            skipped -= 1
        place += 1
    return ()


def _values_behind(word: str, wrapper: Wrapper) -> int:
    """How many of the next words belong to an option."""
    if word.startswith("--"):
        if word[2:] in wrapper.pairs.split():
            return 2
        return int(word[2:] in wrapper.long_values.split() or word in wrapper.text.split())
    values = wrapper.values + "".join(option[1] for option in wrapper.text.split() if option[1] != "-")
    taking = next((place for place, letter in enumerate(word) if place and letter in values), None)
    return int(taking == len(word) - 1)  # otherwise the value is in the same word


def list_option_values(words: Words, options: list[str]) -> Iterator[str]:
    """The values of options: `-c x`, `-qc x`, `-cx`, `--command x` and `--command=x`."""
    for place, word in enumerate(words):
        for option in options if word.startswith("-") else ():
            if word == option or (_is_short(option) and _is_short(word) and word[-1] == option[1]):
                yield from words[place + 1 : place + 2]
            elif _is_short(option) and word.startswith(option):
                yield word[2:]
            elif word.startswith(f"{option}="):
                yield word[len(option) + 1 :]


def _is_short(option: str) -> bool:
    return len(option) > 1 and option[0] == "-" and option[1] != "-"
