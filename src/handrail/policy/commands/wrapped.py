"""What is inside a command that runs others, as far as its words tell. Used to be stricter, never to allow."""

from collections.abc import Iterator

import msgspec

from handrail.policy.commands.targets import RUNNING, to_base_name
from handrail.policy.commands.wrapper_options import ASSIGNMENT, list_option_values, skip_options
from handrail.policy.commands.wrappers import GIT_VALUES, SHELLS, WRAPPERS, Wrapper
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.script import Script, Unparsed

Words = tuple[str, ...]

MAX_INNER_COMMANDS = 100

_RUNS_IN_FD = frozenset(["-x", "-X", "--exec", "--exec-batch"])
_READING = frozenset(["source", "."])
"""Read a file as the shell that they stand in."""
_WITH_FILE = frozenset(["--rcfile", "--init-file"])
_ENDS = frozenset([";", "\\;", "+"])


class InnerCommands(msgspec.Struct, frozen=True):
    """What a command holds."""

    commands: tuple[Words, ...]
    """The commands that it runs, and those that they run in turn."""
    writes: tuple[str, ...]
    """The files that the output of commands in strings goes to: `sh -c 'echo x > a'`."""
    texts: tuple[str, ...]
    """The strings that are commands, for who can read more of the language than is proven."""
    complete: bool
    """Whether a limit was not reached; otherwise the answer must be the strictest there is."""


def unwrap(words: Words) -> InnerCommands:
    """Looks into a command, and into what it finds there."""
    found: dict[Words, None] = {}
    scripts: dict[str, Script | Unparsed] = {}
    waiting = [words]
    for outer in waiting:
        strings = {text: lex(text) for text in _texts(outer)}
        scripts |= strings
        opened = [*_argv(outer), *(words for script in strings.values() for words in _commands(script))]
        new = {inner: None for inner in opened if inner and inner not in found}
        found |= new
        waiting += new
        if len(found) > MAX_INNER_COMMANDS:
            break
    writes = tuple(path for script in scripts.values() for path in _writes(script))
    too_large = any(isinstance(script, Unparsed) and script.too_large for script in scripts.values())
    return InnerCommands(
        tuple(found), writes, tuple(scripts), complete=len(found) <= MAX_INNER_COMMANDS and not too_large
    )


def list_inner_commands(words: Words) -> tuple[Words, ...]:
    """The commands that a command runs, and those that they run in turn."""
    return unwrap(words).commands


def _commands(script: Script | Unparsed) -> Iterator[Words]:
    if isinstance(script, Script):
        yield from (tuple([word.text for word in command.words]) for command in script.commands)


def _writes(script: Script | Unparsed) -> Iterator[str]:
    if isinstance(script, Script):
        redirections = [redirection for command in script.commands for redirection in command.redirections]
        yield from (to.target.text for to in redirections if to.target and to.operator != "<")


def _argv(words: Words) -> Iterator[Words]:
    """Commands that stand there word by word."""
    if not words:
        return
    name = to_base_name(words[0])
    if ASSIGNMENT.match(words[0]):
        yield words[1:]
    elif name == "git":
        yield _git(words)
        yield from _aliases(words)
    elif name == "find":
        yield from _behind(words, RUNNING)
    elif name in {"fd", "fdfind"}:
        yield from _behind(words, _RUNS_IN_FD)
    elif name == "parallel":
        end = next((place for place, word in enumerate(words) if word.startswith(":::")), len(words))
        command = skip_options(words[1:end], WRAPPERS[name])
        yield command
        yield (
            *(word for word in command if word != "{}"),
            *(word for word in words[end:] if not word.startswith(":::")),
        )
    elif name in SHELLS or name in _READING:
        yield from _script(words[1:])
    elif found := _wrapper(name, words):
        yield skip_options(found[1], found[0])


def _texts(words: Words) -> Iterator[str]:
    """Commands in strings."""
    name = to_base_name(words[0]) if words else ""
    if name == "eval":
        yield " ".join(words[1:])
    elif name == "alias":
        yield from (value for word in words[1:] if (value := word.partition("=")[2]))
    elif name == "trap":
        yield from [word for word in words[1:] if word != "--"][:1]
    elif name == "git":  # an alias that begins with ! is for the shell
        yield from (value.partition("=!")[2] for value in list_option_values(words, ["-c"]) if "=!" in value)
    elif name in SHELLS:
        yield from _shell_text(words[1:])
    elif found := _wrapper(name, words):
        wrapper, rest = found
        if wrapper.quotes:
            yield from (word for word in rest if " " in word)
        elif wrapper.joins:
            yield " ".join(next(_argv(words), ()))
        else:
            yield from list_option_values(rest, wrapper.text.split())


def _wrapper(name: str, words: Words) -> tuple[Wrapper, Words] | None:
    for length in (2, 1):
        wrapper = WRAPPERS.get(" ".join((name, *words[1:length])))
        if wrapper and len(words) >= length:
            return wrapper, words[length:]
    return None


def _shell_text(words: Words) -> Iterator[str]:
    """bash -c text, bash -lc text, bash -o pipefail -c text."""
    rest = iter(words)
    has_text = False
    for word in rest:
        if word[:1] not in {"-", "+"}:
            yield from [word] if has_text else []
            return
        has_text = has_text or (word[:2] != "--" and word[0] == "-" and "c" in word)
        if word[-1:] in {"o", "O"} or word in _WITH_FILE:
            next(rest, None)


def _script(words: Words) -> Iterator[Words]:
    """bash run.sh: the file that a shell is given, as if it was called by its path."""
    place = 0
    while place < len(words) and words[place][:1] in {"-", "+"} and words[place] != "-":
        if "c" in words[place] and words[place][:2] != "--":
            return
        place += 2 if words[place][-1:] in {"o", "O"} or words[place] in _WITH_FILE else 1
    if place < len(words) and words[place] != "-":
        path = words[place]
        yield (path if "/" in path else f"./{path}", *words[place + 1 :])


def _behind(words: Words, options: frozenset[str]) -> Iterator[Words]:
    """What stands behind each -exec, up to its end."""
    place = 0
    while place < len(words):
        if words[place] in options:
            end = next((at for at in range(place, len(words)) if words[at] in _ENDS), len(words))
            yield words[place + 1 : end]
            place = end
        place += 1


def _git(words: Words) -> Words:
    """git with its sub-command first; empty where it is so already."""
    place = 1
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in GIT_VALUES else 1
    return ("git", *words[place:]) if 1 < place < len(words) else ()


def _aliases(words: Words) -> Iterator[Words]:
    """What git is told to call otherwise: `-c alias.p=push`."""
    for value in list_option_values(words, ["-c"]):
        name, _, command = value.partition("=")
        if name.lower().startswith("alias.") and not command.startswith("!"):
            yield ("git", *command.split())
