"""Commands that bash has itself, with bash's own options, and those that do nothing but compute."""

import re

from handrail.policy.commands.reading import PathUse
from handrail.policy.shell.script import Word
from handrail.policy.tables.form import ParsedArgs, ProgramSpec

_CONVERSION = r"%[-+ #0']*(?:[0-9]+|\*)?(?:\.(?:[0-9]*|\*))?(?:hh|h|ll|l|L|j|z|t)?[diouxXfFeEgGaAcsbqQ]"
_FORMAT = re.compile(rf"(?:[^%]|%%|{_CONVERSION})*\Z", re.DOTALL)

_TESTED_FILES = frozenset(f"-{letter}" for letter in "bcdefghkprsuwxGLNOS")
_COMPARED_FILES = frozenset({"-nt", "-ot", "-ef"})
# -a is also a file that exists; -v and -R look a variable up, and what stands in its brackets is run.
_TESTS = _TESTED_FILES | _COMPARED_FILES | {"-a", "-o", "-n", "-z", "-t", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"}
_NUMBER = re.compile(r"-[0-9]+\Z")

_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]*)?[smhd]?\Z")
_UNITS = {"m": 60, "h": 3600, "d": 86400}
_MAX_SLEEP_SECONDS = 600
"""No command may take longer in all."""


def _read_text(words: tuple[Word, ...]) -> tuple[PathUse, ...]:
    """Whatever the words are they are only text, but bash looks for what a pattern stands for."""
    return tuple([PathUse(word.text, "read", is_glob=True) for word in words if word.globs])


def _read_printf(words: tuple[Word, ...]) -> tuple[PathUse, ...] | str:
    rest = words[1:] if words and words[0].text == "--" else words
    if not rest or rest[0].globs or (rest is words and rest[0].text[:1] == "-"):
        return "printf only prints with its format first"
    if not _FORMAT.match(rest[0].text):
        return f"printf's format {rest[0].text} may set a variable"
    return _read_text(rest)


def _read_test(words: tuple[Word, ...]) -> tuple[PathUse, ...] | str:
    for word in words:
        if word.text[:1] == "-" and word.text not in _TESTS and not _NUMBER.match(word.text):
            return f"test's {word.text} is not among those that only look"
    texts = [word.text for word in words]
    found = list(_read_text(words))
    for place, text in enumerate(texts):
        if text in _TESTED_FILES or text in _COMPARED_FILES or text == "-a":
            found += [PathUse(after, "read") for after in texts[place + 1 : place + 2]]
        if text in _COMPARED_FILES:
            found += [PathUse(before, "read") for before in texts[max(place - 1, 0) : place]]
    return tuple(found)


def _read_bracket(words: tuple[Word, ...]) -> tuple[PathUse, ...] | str:
    return _read_test(words[:-1]) if words and words[-1].text == "]" else "[ lacks its ]"


def _only_seconds(parsed: ParsedArgs) -> str | None:
    odd = next((text for text in parsed.operands if not _SECONDS.match(text)), None)
    if odd:
        return f"sleep's {odd} is no time that ends"
    seconds = sum(float(text.rstrip("smhd")) * _UNITS.get(text[-1], 1) for text in parsed.operands)
    return f"sleep takes longer than {_MAX_SLEEP_SECONDS} seconds" if seconds > _MAX_SLEEP_SECONDS else None


def _only_a_number(parsed: ParsedArgs) -> str | None:
    odd = next((text for text in parsed.operands if not text.isdigit()), None)
    return odd and f"exit's {odd} is no number"


BUILTINS = (
    ProgramSpec(
        name="echo",
        custom_parser=_read_text,
        match=("echo", "echo -n foo --bar", "echo src/*.py", "echo '$(id)'"),
        no_match=("echo $(id)", "echo `id`"),
    ),
    ProgramSpec(
        name="printf",
        custom_parser=_read_printf,
        match=(
            "printf '%s\\n' a b", "printf -- '-x'", "printf '%5.2f%%' 3", "printf '%-10s|%*d' a 5 1", "printf hello",
        ),
        no_match=(
            "printf -v x %s a", "printf %n x", "printf '%5n' x", "printf '%(%F)T' 0", "printf '%hhn' x", "printf",
            "printf -v'a[0]' x", "printf '%s%n' a 'a[$(id)]'", "printf '%' a",
        ),
    ),
    ProgramSpec(
        name="test",
        custom_parser=_read_test,
        match=("test -f a.txt", "test a = b", "test -d src -a ! -e x", "test 5 -gt -3", "test a -nt b", "test -z ''"),
        no_match=("test -v 'a[$(id)]'", "test -R x", "test ! -v x", "test -n a -a -v x", "test --help"),
    ),
    ProgramSpec(
        name="[",
        custom_parser=_read_bracket,
        match=("[ -f a.txt ]", "[ a != b ]", "[ -s a -o -s b ]", "[ 1 -eq 1 ]"),
        no_match=("[ -v 'a[$(id)]' ]", "[ -f a", "[", "[ -R x ]"),
    ),
    ProgramSpec(
        name="true",
        also=("false", ":"),
        custom_parser=_read_text,
        match=("true", "false", ":", "true a"),
        no_match=("true $(id)", "false > `id`"),
    ),
    ProgramSpec(
        name="exit",
        operands="text",
        reject=_only_a_number,
        match=("exit", "exit 1"),
        no_match=("exit a", "exit -1", "exit 'a[0]'"),
    ),
    ProgramSpec(
        name="pwd",
        flags="LP",
        operands=None,
        match=("pwd", "pwd -P"),
        no_match=("pwd -W", "pwd a", "pwd --physical"),
    ),
    ProgramSpec(
        name="type",
        flags="afptP",
        operands="text",
        match=("type git", "type -a python3 node", "type -P rg"),
        no_match=("type -x git", "type --all git"),
    ),
    ProgramSpec(
        name="command -v",
        also=("command -V",),
        operands="text",
        match=("command -v git", "command -V git", "command -v git node"),
        no_match=("command git", "command -p git", "command -v -p git", "command -pv git"),
    ),
    ProgramSpec(
        name="help",
        flags="dms",
        operands="text",
        match=("help", "help cd", "help -d test"),
        no_match=("help -x", "help --unknown"),
    ),
    ProgramSpec(
        name="umask",
        flags="pS",
        operands=None,
        match=("umask", "umask -S"),
        no_match=("umask 000", "umask -x"),
    ),
    ProgramSpec(
        name="ulimit -a",
        operands=None,
        match=("ulimit -a",),
        no_match=("ulimit -n 5", "ulimit -a -n 5", "ulimit unlimited"),
    ),
    ProgramSpec(
        name="which",
        flags="as",
        long_flags="all",
        operands="text",
        match=("which git", "which -a python3 node"),
        no_match=("which -i git", "which --read-alias git"),
    ),
    ProgramSpec(
        name="sleep",
        operands="text",
        reject=_only_seconds,
        match=("sleep 0.1", "sleep 0", "sleep 0s"),
        no_match=("sleep infinity", "sleep inf", "sleep x", "sleep 1d", "sleep --help=x"),
    ),
    ProgramSpec(
        name="expr",
        custom_parser=_read_text,
        match=("expr 1 + 2", "expr length foo", "expr 5 - 3"),
        no_match=("expr $(id)", "expr `id`"),
    ),
    ProgramSpec(
        name="bc",
        flags="hilqsvw",
        long_flags="help interactive mathlib quiet standard version warn",
        match=("bc", "bc -l", "bc -lq a.bc"),
        no_match=("bc -x", "bc --unknown"),
    ),
    ProgramSpec(
        name="factor",
        flags="h",
        long_flags="exponents help version",
        operands="text",
        match=("factor 12", "factor 2 3"),
        no_match=("factor -x 12", "factor --unknown 12"),
    ),
)  # fmt: skip
