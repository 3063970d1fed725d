"""Matches patterns against the words of a command."""

import posixpath
import re
from collections.abc import Callable

import msgspec

from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Script, Unparsed

# § [policy.rules.patterns] The pattern of a rule about commands: the first words of one simple command, without any
# § wildcard.


class PatternError(ValueError):
    """A pattern that no rule can be made of; says why, in words."""


def parse_command_pattern(pattern: str) -> tuple[str, ...]:
    """The words of a pattern, or a PatternError."""
    if not pattern.strip():
        raise PatternError("the pattern is empty; write the first words of a command")
    script = lex(pattern)
    if isinstance(script, Unparsed):
        raise PatternError(f"the pattern {pattern!r} cannot be read: it {script.reason}")
    return _only_words(pattern, script)


def _only_words(pattern: str, script: Script) -> tuple[str, ...]:
    command = script.commands[0]
    if len(script.commands) > 1 or command.redirections:
        raise PatternError(f"the pattern {pattern!r} is more than one simple command; write a rule for each")
    if any(word.globs for word in command.words):
        raise PatternError(f"the pattern {pattern!r} has a wildcard; a rule is about the first words, just as they are")
    return tuple(word.text for word in command.words)


# § [policy.rules.operands] What may follow the words of an allow rule: plain options, and operands that are paths
# § inside the roots.

Inside = Callable[[str], bool]
"""Whether a word, taken as a path, lies inside the roots."""

_OPTION = re.compile(r"-[A-Za-z0-9_-]*|--[A-Za-z0-9][A-Za-z0-9_-]*=(?P<value>[\w.,:=+@%/-]*)")
# What a program may hand on to a shell, or read as a command of its own: no path that anybody means.
_ODD = re.compile(r"[\x00-\x1f\x7f$`;|&<>'\"\\]")
# A path may also stand behind one of these: of=/dev/sda, src:/etc, @/etc/passwd, type=bind,src=/.
_SEPARATORS = re.compile(r"[=:,@]+")


def is_plain(word: str, inside: Inside) -> bool:
    """Whether a word adds nothing that an allow rule would have to name: `-x`, `--name=value`, `tests/cart`."""
    if not word.startswith("-"):
        return word != "" and not _ODD.search(word) and _all_inside(word, inside)
    option = _OPTION.fullmatch(word)
    if option is None:
        return False
    return option["value"] is None or _all_inside(option["value"], inside)


def is_inside_by_spelling(word: str) -> bool:
    """Inside by its spelling alone: for the examples of rules, which are about no workspace in particular."""
    return not word.startswith(("/", "~")) and posixpath.normpath(word).split("/", 1)[0] != ".."


def _all_inside(word: str, inside: Inside) -> bool:
    pieces = [word, *_SEPARATORS.split(word)] if _SEPARATORS.search(word) else [word]
    return all(inside(piece) and piece[0] != "~" for piece in pieces if piece)


# § [policy.rules.prefix] The first words of a command, as a rule names them, against the words of one.

_GLOB = re.compile(r"[*?[]")
_MAX_BUNDLE_LETTERS = 3
"""Up to so many letters behind one dash are taken for a bundle (`-rf`), more for one name (`-delete`)."""


_PASSED = ("-", "$", "`")
_SAME: dict[str, tuple[str, ...]] = {
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
"""Options that say the same, of programs that people write rules about."""


class Prefix(msgspec.Struct, frozen=True):
    """The words of a pattern, and apart for stricter rules: its sub-commands in order, and its options."""

    words: tuple[str, ...]
    names: tuple[str, ...]
    options: tuple[str, ...]


def build_prefix(words: tuple[str, ...]) -> Prefix:
    """The words of a pattern, sorted."""
    names = tuple(word for word in words[1:] if not word.startswith("-"))
    return Prefix(words, names, tuple(word for word in words[1:] if word.startswith("-")))


def is_about(wanted: Prefix, words: tuple[str, ...]) -> bool:
    """Whether a command with the same program is one that a deny or ask rule speaks of.

    Other options may stand before a sub-command (`git -C x push`), and the options of the rule anywhere, bundled or not
    (`git push origin --force`, `rm -fr`): who wants round a rule would write just that.
    """
    return _in_order(wanted.names, words) and all(_has_any(wanted, words, option) for option in wanted.options)


def is_continuation(wanted: Prefix, words: tuple[str, ...], inside: Inside) -> bool:
    """Whether a command begins with exactly these words and adds only what is plain."""
    size = len(wanted.words)
    return words[:size] == wanted.words and all(is_plain(word, inside) for word in words[size:])


def _in_order(names: tuple[str, ...], words: tuple[str, ...]) -> bool:
    if words[1 : 1 + len(names)] == names:
        return True
    if len(words) == 1 or not (_may_be(words[1], names[0]) or words[1].startswith(_PASSED)):
        return False  # so it ends nearly always, which saves the rest
    found = {0}  # how many of the names may have been met so far: a word can be a sub-command or an option's value
    for at in range(1, len(words)):
        if len(names) in found:
            return True
        further = {count + 1 for count in found if _may_be(words[at], names[count])}
        found = further | found if _may_be_passed(words, at) else further
    return len(names) in found


def _may_be(word: str, name: str) -> bool:
    """A glob may become any name that begins as it does."""
    if word == name or not ("*" in word or "?" in word or "[" in word):
        return word == name
    return name.startswith(_GLOB.split(word, maxsplit=1)[0])


def _may_be_passed(words: tuple[str, ...], at: int) -> bool:
    """An option, what may be the value of one, or what may be expanded to nothing."""
    before = words[at - 1]
    return words[at].startswith(_PASSED) or (at > 1 and before.startswith("-") and "=" not in before)


def _has_any(wanted: Prefix, words: tuple[str, ...], option: str) -> bool:
    """Whether a command has an option of the rule, or for each letter of a bundle one that says the same."""
    if _has(words, option):
        return True
    letters = (
        [option]
        if option.startswith("--") or len(option) > 1 + _MAX_BUNDLE_LETTERS
        else [f"-{one}" for one in option[1:]]
    )
    return bool(letters) and all(any(_has(words, one) for one in _same(wanted, letter)) for letter in letters)


def _same(wanted: Prefix, option: str) -> list[str]:
    program = wanted.words[0].rpartition("/")[2]
    rows = _SAME.get(" ".join((program, *wanted.names[:1]))) or _SAME.get(program, ())
    return next((row.split() for row in rows if option in row.split()), [option])


def _has(words: tuple[str, ...], option: str) -> bool:
    if option.startswith("--"):
        return any(_is_long(word, option) for word in words[1:])
    if option in words[1:]:
        return True
    bundles = [word for word in words[1:] if word.startswith("-") and not word.startswith("--")]
    return 1 < len(option) <= 1 + _MAX_BUNDLE_LETTERS and set(option) <= set("".join(bundles))


def _is_long(word: str, option: str) -> bool:
    """Also with a value, or abbreviated as many programs take it."""
    name = word.partition("=")[0]
    return name == option or (len(name) > 2 and name.startswith("--") and option.startswith(name))
