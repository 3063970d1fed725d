"""Inner commands: those that a wrapper such as sudo or xargs starts.

Policy uses them only to be stricter, never to allow a command.
"""

import re
from collections.abc import Collection, Iterator

import msgspec

from handrail.policy.programs.options import split_git_options, split_options
from handrail.policy.programs.spec import to_base_name
from handrail.policy.programs.wrapper_table import (
    CLASSED,
    FIND_EXEC_OPTIONS,
    INTERPRETERS,
    PROGRAM_OPTIONS,
    SHELLS,
    WRAPPERS,
    ProgramOptions,
    Wrapper,
)
from handrail.policy.rules.command_match import Prefix, build_prefix, is_about
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Script, Unparsed

MAX_INNER_COMMANDS = 100

Words = tuple[str, ...]


class InnerCommands(msgspec.Struct, frozen=True):
    """The commands that a command starts."""

    commands: tuple[Words, ...]
    """The commands it starts, and those that they start in turn."""
    writes: tuple[str, ...]
    """The files that commands in strings redirect to: `sh -c 'echo x > a'`."""
    texts: tuple[str, ...]
    """The strings that are commands."""
    complete: bool
    """False if a limit was reached, so that the strictest decision applies."""


def unwrap(words: Words) -> InnerCommands:
    """Find the commands that a command starts, at any depth."""
    commands: dict[Words, None] = {}
    scripts: dict[str, Script | Unparsed] = {}
    queue = [words]
    for outer in queue:
        strings = {text: lex(text) for text in _list_texts(outer)}
        scripts |= strings
        inner = [*_list_argv(outer), *(new for script in strings.values() for new in _list_script_commands(script))]
        new = {command: None for command in inner if command and command not in commands}
        commands |= new
        queue += new
        if len(commands) > MAX_INNER_COMMANDS:
            break
    writes = tuple(path for script in scripts.values() for path in _list_script_writes(script))
    too_large = any(isinstance(script, Unparsed) and script.too_large for script in scripts.values())
    complete = len(commands) <= MAX_INNER_COMMANDS and not too_large
    return InnerCommands(tuple(commands), writes, tuple(scripts), complete)


def list_inner_commands(words: Words) -> tuple[Words, ...]:
    """The commands that a command starts, at any depth."""
    return unwrap(words).commands


def can_run_code(words: Words) -> bool:
    """Whether commands that begin with these words run any words after them, by any path and in any version."""
    if words[1:3] in _TEST_MODULES:
        return False
    program = words[0].rpartition("/")[2]
    name = program.casefold()
    if name in _RUNNERS or name.rstrip(_VERSION_SIGNS) in _RUNNERS:
        return True
    for starter in _STARTERS:
        size = len(starter.words)
        if starter.words[0] == program and is_about(starter, words):
            started = words[size:] if words[1:size] == starter.words[1:] else ()
            return not started or started[0].startswith("-") or can_run_code(started)
    return False


def has_program_option(words: Words) -> bool:
    """Whether an option of the command may name another program to run."""
    options = PROGRAM_OPTIONS.get(" ".join(words[:2])) or PROGRAM_OPTIONS.get(words[0].rstrip(_VERSION_SIGNS))
    return options is not None and any(_is_program_option(word, options) for word in words[1:])


def has_git_global_options(prefix: Prefix, words: Words) -> bool:
    """Whether a command begins with global options of git that change what runs, and that the rule does not name."""
    if prefix.names or words[0].rpartition("/")[2] != "git":
        return False
    options, _ = split_git_options(words[len(prefix.words) - 1 :])
    return any(word.startswith(_STEERING_OPTIONS) for word in options)


def list_starters(prefix: Prefix) -> tuple[Prefix, ...]:
    """The wrappers that begin as a pattern does, such as `uv run` for a rule that allows `uv`."""
    program, names = prefix.words[0].rpartition("/")[2], prefix.names
    return tuple(
        starter
        for starter in _STARTERS
        if starter.words[0] == program and starter.names[: len(names)] == names and len(starter.names) > len(names)
    )


_VERSION_SIGNS = "0123456789.-"
_TEST_MODULES = (("-m", "pytest"), ("-m", "unittest"))
"""Modules of Python that run the project's tests, as the programs of their names do."""
_RUNNERS = frozenset(name.casefold() for name in INTERPRETERS | CLASSED if " " not in name)
_STARTERS = tuple(
    build_prefix(tuple(name.split()))
    for name in sorted(INTERPRETERS | WRAPPERS.keys())
    if name.casefold() not in _RUNNERS
)
"""Wrappers that an allow rule may name, but only together with the command that they start."""
_STEERING_OPTIONS = ("-c", "--config-env", "--exec-path", "--git-dir", "--work-tree")
"""Global options that make git run another program, or work on another repository."""

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_FD_EXEC_OPTIONS = frozenset(["-x", "-X", "--exec", "--exec-batch"])
_EXEC_ENDS = frozenset([";", "\\;", "+"])
_SOURCE = frozenset(["source", "."])
_SHELL_FILE_OPTIONS = frozenset(["--rcfile", "--init-file"])


def _is_program_option(word: str, options: ProgramOptions) -> bool:
    if not word.startswith("-"):
        return options.assigned and "=" in word
    name = word.lstrip("-").partition("=")[0]
    if word.startswith("--"):  # many programs accept an abbreviation
        return bool(name) and any(option.startswith(name) for option in options.names)
    return name in options.names or bool(set(name) & set(options.letters))


def _list_script_commands(script: Script | Unparsed) -> Iterator[Words]:
    if isinstance(script, Script):
        yield from (command.argv for command in script.commands)


def _list_script_writes(script: Script | Unparsed) -> Iterator[str]:
    if isinstance(script, Script):
        redirections = [redirection for command in script.commands for redirection in command.redirections]
        yield from (to.target.text for to in redirections if to.target and to.operator != "<")


def _list_argv(words: Words) -> Iterator[Words]:
    """The commands that stand there word by word."""
    if not words:
        return
    name = to_base_name(words[0])
    if _ASSIGNMENT.match(words[0]):
        yield words[1:]
    elif name == "git":
        yield from _list_git_commands(words)
    elif name == "find":
        yield from _list_exec_commands(words, FIND_EXEC_OPTIONS)
    elif name in {"fd", "fdfind"}:
        yield from _list_exec_commands(words, _FD_EXEC_OPTIONS)
    elif name == "parallel":
        end = next((place for place, word in enumerate(words) if word.startswith(":::")), len(words))
        command = _skip_options(words[1:end], WRAPPERS[name])
        yield command
        inputs = [word for word in words[end:] if not word.startswith(":::")]
        yield (*(word for word in command if word != "{}"), *inputs)
    elif name in SHELLS or name in _SOURCE:
        has_text, rest = _skip_shell_options(words[1:])
        reads_input = "-" in words[: len(words) - len(rest)]
        if rest and not has_text and not reads_input:  # bash run.sh, as if the script was called by its path
            yield (rest[0] if "/" in rest[0] else f"./{rest[0]}", *rest[1:])
    elif match := _find_wrapper(name, words):
        yield _skip_options(match[1], match[0])


def _list_texts(words: Words) -> Iterator[str]:
    name = to_base_name(words[0]) if words else ""
    if name == "eval":
        yield " ".join(words[1:])
    elif name == "alias":
        yield from (value for word in words[1:] if (value := word.partition("=")[2]))
    elif name == "trap":
        yield from [word for word in words[1:] if word != "--"][:1]
    elif name == "git":  # the shell runs an alias that begins with !
        yield from (value.partition("=!")[2] for value in _list_option_values(words, ["-c"]) if "=!" in value)
    elif name in SHELLS:
        has_text, rest = _skip_shell_options(words[1:])
        yield from rest[:1] if has_text else ()
    elif match := _find_wrapper(name, words):
        wrapper, rest = match
        if wrapper.quotes:
            yield from (word for word in rest if " " in word)
        elif wrapper.joins:
            yield " ".join(next(_list_argv(words), ()))
        else:
            yield from _list_option_values(rest, wrapper.text.split())


def _find_wrapper(name: str, words: Words) -> tuple[Wrapper, Words] | None:
    for length in (2, 1):
        wrapper = WRAPPERS.get(" ".join((name, *words[1:length])))
        if wrapper and len(words) >= length:
            return wrapper, words[length:]
    return None


def _skip_options(words: Words, wrapper: Wrapper) -> Words:
    """The words after the options and operands of the wrapper itself."""
    skipped = wrapper.skipped
    for argument in split_options(words, wrapper.valued, [f"--{name}" for name in wrapper.pairs.split()]):
        if skipped is None or argument.word in wrapper.silent.split():
            return ()
        if argument.option or argument.word == "-" or (wrapper.assigns and _ASSIGNMENT.match(argument.word)):
            continue
        if skipped == 0:
            return words[argument.place :]
        skipped -= 1
    return ()


def _list_option_values(words: Words, options: Collection[str]) -> Iterator[str]:
    """The values of options, also behind `--`, which some wrappers ignore."""
    arguments = split_options(tuple(word for word in words if word != "--"), options)
    yield from (argument.value for argument in arguments if argument.option in options and argument.value)


def _skip_shell_options(words: Words) -> tuple[bool, Words]:
    """Whether a shell gets a command in a string, and the words after its options: bash -o pipefail -c text."""
    place, has_text = 0, False
    while place < len(words) and words[place][:1] in {"-", "+"}:
        word = words[place]
        has_text = has_text or (word[0] == "-" and word[:2] != "--" and "c" in word)
        place += 2 if word[-1:] in {"o", "O"} or word in _SHELL_FILE_OPTIONS else 1
    return has_text, words[place:]


def _list_exec_commands(words: Words, options: frozenset[str]) -> Iterator[Words]:
    """The words after each -exec, up to its end."""
    place = 0
    while place < len(words):
        if words[place] in options:
            end = next((at for at in range(place, len(words)) if words[at] in _EXEC_ENDS), len(words))
            yield words[place + 1 : end]
            place = end
        place += 1


def _list_git_commands(words: Words) -> Iterator[Words]:
    """git without its global options, and the commands of aliases: `-c alias.p=push`."""
    options, rest = split_git_options(words)
    if options and rest:
        yield ("git", *rest)
    for value in _list_option_values(words, ["-c"]):
        name, _, command = value.partition("=")
        if name.lower().startswith("alias.") and not command.startswith("!"):
            yield ("git", *command.split())
