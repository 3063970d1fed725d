"""Makes strings that may or may not be proven: from tables, from what programs say of themselves, from the corpora."""

import random
import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from handrail.policy.programs.registry import build_registry
from handrail.policy.programs.spec import ProgramSpec

from .records import attacks, everyday
from .sandbox import Sandbox

_OPTION = re.compile(r"(?<![\w-])(--?[A-Za-z0-9][\w-]*)(\[?=)?")
_TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|[^\s'\"]+|\s+")
_QUESTIONS = {"--version", "-v", "-V"}
_JOINS = (" | ", " | ", " && ", " || ", "; ")
_ENDINGS = ("", "", "", "", "", " 2>/dev/null", " 2>&1", " >/dev/null", " < notes.txt", " > pwned.txt", " 2> pwned.txt")
_VALUES = (
    "1", "2", "5", "0", "10", "3,5", "+2", "-1", "a", "%s", "%h %s", "never", "always", "auto", "x", "py", "*.py",
    "txt", "name", "short", "iso", ",", "' '", "f", "d", "README.md", "words.txt", "pwned.txt", "src", "canary", ".",
    "-", "--",
)  # fmt: skip
_OPERANDS = (
    "README.md", "notes.txt", "words.txt", "left.txt", "right.txt", "table.csv", "data.json", "config.yaml", "src",
    ".", "src/main.py", "blob.bin", "packed.gz", "packed.zst", "dump.hex", "link", "'my notes.txt'", "*.txt",
    "src/*.py", "*", "hostile/pair/*", "hostile/sort/*", "-", "main", "'def '", "HEAD", "HEAD~1", "v1.0", "feature",
    "signed", "HEAD:README.md", "main..feature", ".name", "'.items[]'", "1", "3", "pwned.txt", "canary", "nosuch",
    "build",
)  # fmt: skip
_SOUP = (
    "ls", "cat", "echo", "sort", "uniq", "git", "log", "find", "rg", "test", "printf", "words.txt", "pwned.txt",
    "canary", "-o", "-n", "--", "*", "?", "[ab]", "~", "$x", "$(canary)", "`canary`", "<(canary)", ">", ">>", "<",
    "2>&1", "&>", "&", "|", "|&", "&&", "||", ";", "\n", "\r", "\x0b", "\u00a0", "\\", "'", '"', "{a,b}", "!", "#",
    "(", ")", "=", "a=1",
)  # fmt: skip
_SIGNS = " \t\n'\"\\$`*?[]{}()<>|&;~!#=-/.,:@%^+abcow1\r\u00a0"


class Options(msgspec.Struct, frozen=True):
    """What may stand behind a program's name."""

    name: str
    known: tuple[str, ...]
    """In its table; of those with a value, `--name=` or the letter alone."""
    said: tuple[str, ...]
    """Named by the program itself, in the table or not."""


def gather(box: Sandbox) -> tuple[Options, ...]:
    """The options of every program that has a table, but for those that may only be asked for their version."""
    tables = {name: table for name, table in build_registry().tables.items() if not _QUESTIONS & {*name[1:]}}
    said = _said(box, [" ".join(name) for name in tables])
    return tuple(
        Options(name, _known(table), options) for (name, options), table in zip(said, tables.values(), strict=True)
    )


def generators(options: Sequence[Options]) -> Mapping[str, Callable[[random.Random], str]]:
    """By name; each makes one string."""
    hostile = sorted({token for attack in attacks("seen") for token in _tokens(attack.text)})
    return {
        "tables": lambda source: _script(source, lambda: _command(source, source.choice(options), hostile)),
        "crossed": lambda source: _crossed(source, hostile),
        "mutated": lambda source: _mutated(source, source.choice(attacks("seen")).text),
        "worn": lambda source: _mutated(source, source.choice(everyday("seen")).text),
        "soup": lambda source: "".join(source.choice(_SOUP) + source.choice((" ", " ", "")) for _ in range(6)),
    }


def _known(table: ProgramSpec) -> tuple[str, ...]:
    short = [f"-{letter}" for letter in table.flags + table.values]
    long = [f"--{name}" for name in (table.long_flags + " " + table.long_values).split()]
    return (*short, *long, *table.paths)


def _said(box: Sandbox, names: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """The options that programs name when they are asked, all in one sandbox; nothing follows from a wrong one."""
    asked = (f"{name} {'-h' if name.startswith('git ') else '--help'} 2>&1; printf '\\0'" for name in names)
    texts = box.run("\n".join(asked)).stdout.decode(errors="replace").split("\0")
    options = [{option + ("=" if value else "") for option, value in _OPTION.findall(text)} for text in texts[:-1]]
    return [(name, tuple(sorted(one))) for name, one in zip(names, options, strict=True)]


def _script(source: random.Random, make: Callable[[], str]) -> str:
    text = source.choice(("", "", "", "", "cd src && ", "cd hostile/pair; ")) + make()
    while source.random() < 0.3:
        text += source.choice(_JOINS) + make()
    return text + source.choice(_ENDINGS)


def _command(source: random.Random, options: Options, hostile: Sequence[str]) -> str:
    words = [options.name]
    for _ in range(source.choice((0, 1, 1, 2, 2, 3))):
        words += _option(source, options, hostile)
    words += source.choices(_OPERANDS, k=source.choice((0, 1, 1, 2, 2, 3)))
    if source.random() < 0.1:
        head, *rest = words
        source.shuffle(rest)
        words = [head, *rest]
    return " ".join(_dressed(source, word) for word in words)


def _option(source: random.Random, options: Options, hostile: Sequence[str]) -> list[str]:
    kind = source.random()
    pool = (options.known or options.said) if kind < 0.75 else options.said if kind < 0.95 else hostile
    option = source.choice(pool or ("-n",))
    if option.endswith("="):
        return [option + source.choice(_VALUES)]
    if re.fullmatch("-[A-Za-z]", option) and source.random() < 0.4:  # bundles, and values in the same word
        letters = [one[1] for one in (option, *options.known, *options.said) if re.fullmatch("-[A-Za-z]", one)]
        return [option + "".join(source.choices(letters, k=source.choice((1, 2)))) + source.choice(("", "", "1", "f"))]
    if option.startswith("--") and source.random() < 0.1:
        return [option[: source.randint(3, max(3, len(option)))]]  # an abbreviation
    return [option] if source.random() < 0.6 else [option, source.choice(_VALUES)]


def _dressed(source: random.Random, word: str) -> str:
    if " " in word or "'" in word or source.random() < 0.85:
        return word
    return source.choice((f"'{word}'", f'"{word}"', f"{word[:1]}'{word[1:]}'", f"\\{word}"))


def _crossed(source: random.Random, hostile: Sequence[str]) -> str:
    """An everyday command with words out of attacks, or out of other everyday commands."""
    tokens = _tokens(source.choice(everyday("seen")).text)
    for _ in range(source.choice((1, 1, 2))):
        other = (
            source.choice(hostile)
            if source.random() < 0.5
            else source.choice(_tokens(source.choice(everyday("seen")).text))
        )
        place = source.randrange(len(tokens) + 1)
        tokens[place : place + source.choice((0, 1))] = [other]
    return " ".join(tokens)


def _mutated(source: random.Random, text: str) -> str:
    for _ in range(source.choice((1, 1, 2, 3))):
        start = source.randrange(len(text) + 1)
        end = min(len(text), start + source.choice((0, 0, 1, 1, 2, 5)))
        put = source.choice(("", source.choice(_SIGNS), source.choice(_SIGNS), source.choice(_SOUP)))
        text = text[:start] + put + text[end:]
    return text


def _tokens(text: str) -> list[str]:
    return [token for token in _TOKEN.findall(text) if not token.isspace()]
