"""Programs that start other programs."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from handrail.policy.builtin_denies import RUNNING, to_base_name
from handrail.policy.programs.classes import GIT_VALUES, GROUPS, SHELLS, WRAPPERS, Wrapper
from handrail.policy.rules.command_match import Prefix, build_prefix, is_about
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Script, Unparsed

# § [policy.commands.wrapper_options] Where the options of a wrapper end, and what their values are.

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


# § [policy.commands.wrapped] What is inside a command that runs others, as far as its words tell. Used to be
# § stricter, never to allow.

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


# § [policy.commands.told] Programs of the project's own that may be told, in their options, to run something else:
# § then they are wrappers.


class _Telling(NamedTuple):
    """The options that say what is run: letters, which may stand in a bundle, and names."""

    letters: str
    names: tuple[str, ...]
    assigned: bool = False
    """Whether an operand such as `SHELL=x` says it too."""


_MAKE = _Telling("fEI", ("file", "makefile", "eval"), assigned=True)
_COMPILER = _Telling("", ("wrapper", "fplugin", "specs"))
_TEX = _Telling("", ("shell-escape", "enable-write18", "shell-restricted"))
_TOLD = {
    "git rebase": _Telling("x", ("exec",)),
    "git archive": _Telling("", ("exec", "remote")),
    "git merge": _Telling("s", ("strategy",)),
    "go": _Telling("", ("exec", "toolexec", "vettool")),
    "cargo": _Telling("", ("config",)),
    "rustc": _Telling("C", ("codegen",)),
    "make": _MAKE,
    "gmake": _MAKE,
    "just": _Telling("cf", ("command", "shell", "shell-arg", "shell-command", "justfile", "set")),
    "cmake": _Telling("", ("E", "P")),
    "rake": _Telling("eEpfr", ("execute", "execute-print", "execute-continue", "rakefile", "require")),
    "prove": _Telling("e", ("exec",)),
    "pylint": _Telling("", ("init-hook", "load-plugins")),
    "latexmk": _Telling("er", ("latex", "pdflatex", "lualatex", "xelatex", *_TEX.names)),
    "protoc": _Telling("", ("plugin",)),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++"), _COMPILER),
    **dict.fromkeys(("tex", "latex", "pdflatex", "xelatex"), _TEX),
}


def has_program_option(words: tuple[str, ...]) -> bool:
    """Whether an option of the command says what else is run. In doubt it does."""
    telling = _TOLD.get(" ".join(words[:2])) or _TOLD.get(words[0].rstrip("0123456789.-"))
    return telling is not None and any(_tells(word, telling) for word in words[1:])


def _tells(word: str, telling: _Telling) -> bool:
    if not word.startswith("-"):
        return telling.assigned and "=" in word
    name = word.lstrip("-").partition("=")[0]
    if word.startswith("--"):  # where a long option may be shortened, its beginning is as good
        return bool(name) and any(one.startswith(name) for one in telling.names)
    return name in telling.names or bool(set(name) & set(telling.letters))


# § [policy.rules.code] Commands that run the code or the command they are given: an allow rule cannot speak of them
# § as a whole.

_RUNNING = [name for group in GROUPS if group.rule in {"exec.interpreter", "exec.wrapper"} for name in group.programs]
_ALWAYS = frozenset(name.casefold() for name in _RUNNING if " " not in name)
_STARTERS = tuple(
    build_prefix(tuple(name.split())) for name in sorted({*_RUNNING, *WRAPPERS}) if name.casefold() not in _ALWAYS
)
"""They start what follows them: a rule may name that, but must name it."""
_VERSION = "0123456789.-"


def can_run_code(words: tuple[str, ...]) -> bool:
    """Whether commands that begin with these words run whatever comes next, by any path and in any version."""
    program = words[0].rpartition("/")[2]
    name = program.casefold()
    if name in _ALWAYS or name.rstrip(_VERSION) in _ALWAYS:
        return True
    for starter in _STARTERS:
        size = len(starter.words)
        if starter.words[0] == program and is_about(starter, words):
            started = words[size:] if words[1:size] == starter.words[1:] else ()
            return not started or started[0].startswith("-") or can_run_code(started)
    return False


_STEERING = ("-c", "--config-env", "--exec-path", "--git-dir", "--work-tree")
"""What git takes before its sub-command that makes it run something else, or work on another repository."""


def has_git_global_options(wanted: Prefix, words: tuple[str, ...]) -> bool:
    """Whether a command begins with options for git as a whole that a rule for git as a whole did not name."""
    if wanted.names or words[0].rpartition("/")[2] != "git":
        return False
    place = len(wanted.words)
    while place < len(words) and words[place].startswith("-"):
        if words[place].startswith(_STEERING):
            return True
        place += 2 if words[place] in GIT_VALUES else 1
    return False


def list_starters(wanted: Prefix) -> tuple[Prefix, ...]:
    """What starts other programs and begins as a pattern does: `uv run`, for a rule that allows `uv`."""
    program, names = wanted.words[0].rpartition("/")[2], wanted.names
    return tuple(
        starter
        for starter in _STARTERS
        if starter.words[0] == program and starter.names[: len(names)] == names and len(starter.names) > len(names)
    )
