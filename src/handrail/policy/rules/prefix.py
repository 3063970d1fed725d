"""The first words of a command, as a rule names them, against the words of one."""

import re

import msgspec

from handrail.policy.rules.operands import Inside, is_plain

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
