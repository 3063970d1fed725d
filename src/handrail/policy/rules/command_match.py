"""Matches the pattern of a rule against the words of a command."""

import posixpath
import re
from collections.abc import Callable

import msgspec

from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Unparsed

Inside = Callable[[str], bool]
"""Whether a word, taken as a path, lies inside the roots."""


class PatternError(ValueError):
    """A pattern that no rule can use."""


class Prefix(msgspec.Struct, frozen=True):
    """The words of a pattern, and separately its sub-commands in order, and its options."""

    words: tuple[str, ...]
    names: tuple[str, ...]
    options: tuple[str, ...]


def parse_command_pattern(pattern: str) -> tuple[str, ...]:
    """The words of a pattern: the first words of one simple command, without wildcards."""
    if not pattern.strip():
        raise PatternError("the pattern is empty; write the first words of a command")
    script = lex(pattern)
    if isinstance(script, Unparsed):
        raise PatternError(f"the pattern {pattern!r} cannot be read: it {script.reason}")
    command = script.commands[0]
    if len(script.commands) > 1 or command.redirections:
        raise PatternError(f"the pattern {pattern!r} is more than one simple command; write a rule for each")
    if any(word.globs for word in command.words):
        raise PatternError(f"the pattern {pattern!r} has a wildcard; a rule is about the first words, just as they are")
    return command.argv


def build_prefix(words: tuple[str, ...]) -> Prefix:
    """Separate the sub-commands of a pattern from its options."""
    names = tuple(word for word in words[1:] if not word.startswith("-"))
    return Prefix(words, names, tuple(word for word in words[1:] if word.startswith("-")))


def is_about(prefix: Prefix, words: tuple[str, ...]) -> bool:
    """Whether a deny or ask rule covers a command with the same program.

    Other options may stand before a sub-command (`git -C x push`). The options of the rule may stand anywhere, bundled
    or not (`git push origin --force`, `rm -fr`). Otherwise a command could evade the rule.
    """
    return _has_names(prefix.names, words) and all(_has_option(prefix, words, option) for option in prefix.options)


def is_continuation(prefix: Prefix, words: tuple[str, ...], inside: Inside) -> bool:
    """Whether a command begins with exactly these words and adds only plain ones."""
    size = len(prefix.words)
    return words[:size] == prefix.words and all(is_plain(word, inside) for word in words[size:])


def is_plain(word: str, inside: Inside) -> bool:
    """Whether a word adds nothing that an allow rule would have to name: `-x`, `--name=value`, `tests/cart`."""
    if not word.startswith("-"):
        return word != "" and not _SHELL_SIGNS.search(word) and _is_all_inside(word, inside)
    option = _OPTION.fullmatch(word)
    if option is None:
        return False
    return option["value"] is None or _is_all_inside(option["value"], inside)


def is_inside_by_spelling(word: str) -> bool:
    """Whether a path is inside by its spelling. For examples of rules, which have no workspace."""
    return not word.startswith(("/", "~")) and posixpath.normpath(word).split("/", 1)[0] != ".."


_OPTION = re.compile(r"-[A-Za-z0-9_-]*|--[A-Za-z0-9][A-Za-z0-9_-]*=(?P<value>[\w.,:=+@%/-]*)")
# Signs that a program may hand on to a shell, or read as its own commands. They are unusual in paths.
_SHELL_SIGNS = re.compile(r"[\x00-\x1f\x7f$`;|&<>'\"\\]")
# A path may follow one of these: of=/dev/sda, src:/etc, @/etc/passwd, type=bind,src=/.
_SEPARATORS = re.compile(r"[=:,@]+")
_GLOB = re.compile(r"[*?[]")
_MAX_BUNDLE_LETTERS = 3
"""More letters after one dash are one name (`-delete`), not a bundle (`-rf`)."""
_SKIPPABLE = ("-", "$", "`")
_SYNONYMS: dict[str, tuple[str, ...]] = {
    "rm": ("-r -R --recursive", "-f --force"),
    "cp": ("-r -R --recursive", "-f --force"),
    "chmod": ("-R --recursive",),
    "chown": ("-R --recursive",),
    "chgrp": ("-R --recursive",),
    "git push": ("-f --force", "-d --delete"),
    "git clean": ("-f --force",),
    "git commit": ("-n --no-verify", "-a --all"),
    "git branch": ("-d --delete", "-f --force"),
}
"""Options with the same meaning, of programs that people write rules about."""


def _is_all_inside(word: str, inside: Inside) -> bool:
    pieces = [word, *_SEPARATORS.split(word)] if _SEPARATORS.search(word) else [word]
    return all(inside(piece) and piece[0] != "~" for piece in pieces if piece)


def _has_names(names: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """Whether a command has the sub-commands in order."""
    if words[1 : 1 + len(names)] == names:
        return True
    if len(words) == 1 or not (_may_become(words[1], names[0]) or words[1].startswith(_SKIPPABLE)):
        return False  # the usual case, without the loop
    counts = {0}  # how many names may have matched so far: a word can be a sub-command or the value of an option
    for at in range(1, len(words)):
        if len(names) in counts:
            return True
        further = {count + 1 for count in counts if _may_become(words[at], names[count])}
        counts = further | counts if _may_be_skipped(words, at) else further
    return len(names) in counts


def _may_become(word: str, name: str) -> bool:
    """Whether a word is the name, or a glob that bash may expand to it."""
    if word == name or not ("*" in word or "?" in word or "[" in word):
        return word == name
    return name.startswith(_GLOB.split(word, maxsplit=1)[0])


def _may_be_skipped(words: tuple[str, ...], at: int) -> bool:
    """Whether a word is an option, may be the value of one, or may expand to nothing."""
    before = words[at - 1]
    return words[at].startswith(_SKIPPABLE) or (at > 1 and before.startswith("-") and "=" not in before)


def _has_option(prefix: Prefix, words: tuple[str, ...], option: str) -> bool:
    """Whether a command has an option of the rule, or a synonym for each letter of a bundle."""
    if _has_spelling(words, option):
        return True
    is_name = option.startswith("--") or len(option) > 1 + _MAX_BUNDLE_LETTERS
    letters = [option] if is_name else [f"-{letter}" for letter in option[1:]]
    return bool(letters) and all(
        any(_has_spelling(words, synonym) for synonym in _list_synonyms(prefix, letter)) for letter in letters
    )


def _list_synonyms(prefix: Prefix, option: str) -> list[str]:
    program = prefix.words[0].rpartition("/")[2]
    rows = _SYNONYMS.get(" ".join((program, *prefix.names[:1]))) or _SYNONYMS.get(program, ())
    return next((row.split() for row in rows if option in row.split()), [option])


def _has_spelling(words: tuple[str, ...], option: str) -> bool:
    if option.startswith("--"):
        return any(_is_long_option(word, option) for word in words[1:])
    if option in words[1:]:
        return True
    bundles = [word for word in words[1:] if word.startswith("-") and not word.startswith("--")]
    return 1 < len(option) <= 1 + _MAX_BUNDLE_LETTERS and set(option) <= set("".join(bundles))


def _is_long_option(word: str, option: str) -> bool:
    """Whether a word is the option, with a value, or abbreviated as many programs accept it."""
    name = word.partition("=")[0]
    return name == option or (len(name) > 2 and name.startswith("--") and option.startswith(name))
