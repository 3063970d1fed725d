"""Classifies a simple command by the built-in knowledge about its program."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import TypeVar

import msgspec

from handrail.policy.programs.classes import GROUPS, VERSIONS
from handrail.policy.programs.options import parse_path_uses
from handrail.policy.programs.spec import Classification, Effect, PathUse, ProgramClass, ProgramSpec
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import SimpleCommand, Unparsed, Word

# The programs that each module of tables describes. A command loads only its own module: loading all of them takes as
# long as a hundred commands.
_MODULES = {
    "data": "jq yq od hexdump hd xxd strings nm readelf objdump size zipinfo gzip unzip zcat",
    "files": "ls dir vdir stat du df tree file realpath readlink basename dirname find grep egrep fgrep rg fd fdfind",
    "git": "git",
    "http": "curl wget",
    "system": "echo printf test [ true false : exit pwd type command help umask ulimit which sleep expr bc factor "
    "date cal ncal env printenv id whoami logname arch groups users uname hostname uptime nproc getconf "
    "locale ps pgrep free lscpu tty who w bash sh node npm pip pip3",
    "text": "cat head tail wc nl tac rev fold fmt expand unexpand iconv cut tr sort uniq comm join paste column shuf "
    "tsort numfmt seq diff cmp sed sha256sum md5sum sha1sum sha224sum sha384sum sha512sum b2sum cksum sum base64 "
    "base32 basenc",
    "write": "rm rmdir unlink mv cp ln install rsync mkdir touch tee truncate chmod chown chgrp dd",
}
_SYSTEM_FOLDERS = ("/bin/", "/usr/bin/")
_SUB_COMMAND = re.compile(r"[a-z][a-z-]*\Z")
LOOPBACK_RULE = "exec.loopback"
"""The rule of commands that reach nothing but loopback hosts."""
_READS_LOOPBACK = "only reads from the session's own network"
_EFFECTS: dict[Effect, tuple[str, str]] = {
    "proven": ("exec.read-only", "only reads"),
    "write": ("exec.write", "writes the files that it names"),
    "delete": ("exec.delete", "deletes the files that it names"),
    "network": ("exec.network", "reaches other machines"),
}

_DURATION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,3})?[smhd]?")
_XARGS_VALUED = frozenset(["-n", "-P", "-L", "-d"])
_XARGS_PLACEHOLDERS = frozenset([("-I", "{}"), ("-I", "%")])
"""They occur in the name of no program, which xargs would replace too."""
_XARGS_OPTION = re.compile(r"-[0rtx]+|-[nPLd].+|-I(?:\{\}|%)|--null|--no-run-if-empty")
_FOUND_FILE = PathUse("{}", "read")
PROVEN_STARTERS = frozenset(["timeout", "xargs", "find"])
"""Programs that are proven if the command that they start is."""
_TAKES_ANY_WORD = frozenset(
    ("cat", "head", "wc", "nl", "ls", "stat", "basename", "dirname", "realpath", "readlink", "grep", "egrep", "fgrep",
     "echo", "cut", "du", "md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum")
)  # fmt: skip
"""Programs that only read, whatever words xargs adds. No option of theirs writes or starts a program."""

_Name = tuple[str, ...]
_Entry = TypeVar("_Entry", ProgramSpec, ProgramClass)


def classify(command: SimpleCommand, *, loopback: bool = False) -> Classification:
    """The effect of a command by its words, without its redirections. An unknown command is unproven.

    `loopback`: whether loopback hosts are the session's own network.
    """
    if command.words[0].text in PROVEN_STARTERS and (proven := _prove_starter(command, loopback=loopback)) is not None:
        return proven
    words, name, match = _look_up(command)
    if "/" in name:
        return _build_unproven("exec.script", f"{name} is a program given by its path", words[1:])
    if match is None:  # it may be an interpreter or a wrapper, so no grant can cover it
        return _build_unproven("exec.unknown", f"handrail does not know what {name} does", words[1:])
    return _classify_known(name, words, match, loopback=loopback)


def classify_words(words: tuple[str, ...], *, loopback: bool = False) -> Classification:
    """As `classify`, for words in which nothing is left to expand."""
    return classify(SimpleCommand(tuple(map(Word, words))), loopback=loopback)


def add_guard_options(command: SimpleCommand) -> SimpleCommand:
    """Add the options that keep the program of a proven command from starting others."""
    started = _split_starter(command) if command.words[0].text in PROVEN_STARTERS else None
    if started is not None:
        own = command.words[: len(command.words) - len(started.words)]
        return msgspec.structs.replace(command, words=(*own, *add_guard_options(started).words))
    words, _, match = _look_up(command)
    guards = match.table.guards.split() if match and match.table else []
    if match is None or not guards:
        return command
    guarded = (*words[: match.length], *map(Word, guards), *words[match.length :])
    return msgspec.structs.replace(command, words=guarded)


def skip_timeout(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of the command that `timeout 10` starts. Those of other commands as they are."""
    return words[2:] if words[0] == "timeout" and len(words) > 2 and _DURATION.fullmatch(words[1]) else words


def _prove_starter(command: SimpleCommand, *, loopback: bool) -> Classification | None:
    """The effect of a command that starts another, if both only read. None for others."""
    if command.words[0].text == "find":
        return _prove_find(command)
    started = _split_starter(command)
    proven = started and classify(started, loopback=loopback)
    return proven if proven and proven.effect == "proven" else None


def _prove_find(command: SimpleCommand) -> Classification | None:
    """The effect of find with -exec, if the command behind it reads the files that find gives it. None for others.

    The name of such a file begins with a folder that find starts from, so it is never an option. `{} +` stands for
    several files.
    """
    argv = command.argv
    start = argv.index("-exec") + 1 if "-exec" in argv else len(argv)
    end = next((place for place in range(start, len(argv)) if argv[place] in {";", "+"}), len(argv))
    words = command.words[start:end]
    if not words or end == len(argv) or words[0].globs:
        return None
    names = [word for word in words if word.text == "{}"]
    started = SimpleCommand((*words, *names))
    inner = classify(started)
    before = classify(SimpleCommand(command.words[: start - 1]))  # `-exec` is not a value of another word
    outer = classify(SimpleCommand((*command.words[: start - 1], *command.words[end + 1 :])))
    if {inner.effect, before.effect, outer.effect} != {"proven"} or add_guard_options(started) != started:
        return None
    are_files = sum("{}" in word.text for word in words) == len(names) == inner.uses.count(_FOUND_FILE) / 2
    if not are_files and words[0].text not in _TAKES_ANY_WORD:
        return None
    return msgspec.structs.replace(outer, uses=(*outer.uses, *(use for use in inner.uses if "{}" not in use.path)))


def _split_starter(command: SimpleCommand) -> SimpleCommand | None:
    """The command that `timeout 10` or `xargs` starts. None for other commands."""
    words = command.argv
    size = _count_xargs_words(words) if words[0] == "xargs" else len(words) - len(skip_timeout(words))
    if not 0 < size < len(words) or any(word.globs for word in command.words[: size + 1]):
        return None
    return msgspec.structs.replace(command, words=command.words[size:])


def _count_xargs_words(words: tuple[str, ...]) -> int:
    """The number of words before the program of xargs. 0 if a word may do more, or the program not take any word."""
    size = 1
    while size < len(words) and words[size].startswith("-"):
        if words[size] in _XARGS_VALUED or words[size : size + 2] in _XARGS_PLACEHOLDERS:
            size += 2
        elif _XARGS_OPTION.fullmatch(words[size]):
            size += 1
        else:
            return 0
    return size if words[size : size + 1] and words[size] in _TAKES_ANY_WORD else 0


class ProgramMatch(msgspec.Struct, frozen=True):
    """The built-in knowledge about the program of a command."""

    table: ProgramSpec | None
    length: int
    """Number of words in the table's name."""
    group: ProgramClass | None
    """The class of the program, for commands that no table accepts."""
    group_length: int
    has_parts: bool
    """Whether the program has sub-commands."""


class ProgramRegistry:
    """Tables and classes by name. If a name has both, the class covers what the table does not accept."""

    def __init__(self, tables: Iterable[ProgramSpec], groups: Iterable[ProgramClass]) -> None:
        self.tables: dict[_Name, ProgramSpec] = {}
        self.groups: dict[_Name, ProgramClass] = {}
        self._longest: dict[str, int] = {}
        self._with_parts: set[str] = set()
        for group in groups:
            for name in sorted(group.programs):
                self._add(self.groups, name, group)
        self._add_tables(tables)

    def extend(self, tables: Iterable[ProgramSpec]) -> "ProgramRegistry":
        """A copy with more tables."""
        other = ProgramRegistry((), ())
        other.tables, other.groups = dict(self.tables), self.groups
        other._longest, other._with_parts = dict(self._longest), set(self._with_parts)
        other._add_tables(tables)
        return other

    def find(self, words: _Name) -> ProgramMatch | None:
        """The longest names that the words begin with. None if the program is unknown."""
        length, grouped = self._find_length(self.tables, words), self._find_length(self.groups, words)
        group = self.groups.get(words[:grouped])
        if group is None:  # python3.11 and gcc-12 have the class of python and gcc, but not their tables
            plain = (words[0].rstrip("0123456789.-"), *words[1:])
            grouped = self._find_length(self.groups, plain)
            group = self.groups.get(plain[:grouped])
        known = words[0] in self._longest or group
        has_parts = words[0] in self._with_parts
        return ProgramMatch(self.tables.get(words[:length]), length, group, grouped, has_parts) if known else None

    def _find_length(self, entries: Mapping[_Name, ProgramSpec] | Mapping[_Name, ProgramClass], words: _Name) -> int:
        longest = min(self._longest.get(words[0], 0), len(words))
        return next((length for length in range(longest, 0, -1) if words[:length] in entries), 0)

    def _add_tables(self, tables: Iterable[ProgramSpec]) -> None:
        for table in tables:
            for name in (table.name, *table.also):
                self._add(self.tables, name, table)

    def _add(self, entries: dict[_Name, _Entry], name: str, entry: _Entry) -> None:
        words = tuple(name.split())
        if words in entries:
            raise ValueError(f"{name} is in two tables")
        entries[words] = entry
        self._longest[words[0]] = max(len(words), self._longest.get(words[0], 0))
        if len(words) > 1 and not words[1].startswith("-"):
            self._with_parts.add(words[0])


@cache
def build_registry() -> ProgramRegistry:
    return _build_classes().extend(table for module in _MODULES for table in _load_tables(module))


def load_registry(program: str) -> ProgramRegistry:
    """The part of the registry that a command of this program needs."""
    return _build_part(_map_programs().get(program))


@cache
def _build_part(module: str | None) -> ProgramRegistry:
    return _build_classes().extend(_load_tables(module)) if module else _build_classes()


@cache
def _build_classes() -> ProgramRegistry:
    return ProgramRegistry(VERSIONS, GROUPS)


@cache
def _map_programs() -> dict[str, str]:
    return {program: module for module, programs in _MODULES.items() for program in programs.split()}


def _load_tables(module: str) -> tuple[ProgramSpec, ...]:
    return import_module(f"handrail.policy.programs.{module}").TABLES


def find_example_refusal(table: ProgramSpec, registry: ProgramRegistry, text: str) -> str | None:
    """Why a table does not accept an example, or None if it does. For CI and `handrail policy test`."""
    script = lex(text)
    if isinstance(script, Unparsed):
        return f"it {script.reason}"
    if len(script.commands) != 1:
        return "it is more than one command"
    command = script.commands[0]
    match = registry.find(command.argv)
    if match is None or match.table is not table:
        return "it is not about it"
    uses = parse_path_uses(table, command.words[match.length :])
    return uses if isinstance(uses, str) else None


def _look_up(command: SimpleCommand) -> tuple[tuple[Word, ...], str, ProgramMatch | None]:
    words = command.words
    if [word.text for word in words[:2]] in (["git", "--no-pager"], ["git", "-P"]):  # affects only the display
        words = (words[0], *words[2:])
    name = _strip_system_folder(words[0].text)
    return words, name, load_registry(name).find((name, *[word.text for word in words[1:]]))


def _strip_system_folder(name: str) -> str:
    for folder in _SYSTEM_FOLDERS:
        bare = name.removeprefix(folder)
        if bare != name and "/" not in bare and load_registry(bare).find((bare,)):
            return bare
    return name


def _classify_known(name: str, words: tuple[Word, ...], match: ProgramMatch, *, loopback: bool) -> Classification:
    fault = None
    typed = " ".join([name, *[word.text for word in words[1 : match.length]]])
    table = match.table
    if table and (loopback or not table.only_loopback):
        uses = parse_path_uses(table, words[match.length :])
        if not isinstance(uses, str):
            return _build_accepted(table, typed, uses)
        fault = None if table.only_loopback else _name_typed_program(uses, table, typed)
    if match.group:
        # The table gives the better reason, unless it describes only a part of the program: an interpreter stays one.
        return _classify_group(match, match.group, words, fault if match.group_length >= match.length else None)
    if table and fault:
        grant = _cut_grant(typed) if table.grantable else ""
        return _build_unproven("exec.option", fault, words[match.length :], grant)
    return _classify_unknown_part(name, words)


def _name_typed_program(fault: str, table: ProgramSpec, typed: str) -> str:
    """The fault with the name that was typed. One table may describe several programs."""
    if fault.startswith((f"{table.name} ", f"{table.name}'s ")):
        return typed + fault.removeprefix(table.name)
    return fault


def _build_accepted(table: ProgramSpec, typed: str, uses: tuple[PathUse, ...]) -> Classification:
    rule, does = (LOOPBACK_RULE, _READS_LOOPBACK) if table.only_loopback else _EFFECTS[table.effect]
    grant = "" if table.effect == "proven" or not table.grantable else _cut_grant(typed)
    return Classification(table.effect, rule, f"{typed} {does}", uses, grant)


def _classify_group(
    match: ProgramMatch, group: ProgramClass, words: tuple[Word, ...], fault: str | None
) -> Classification:
    name = " ".join([word.text for word in words[: match.group_length]])
    rest = words[match.group_length :]
    grant = _find_grant_class(name, rest, has_parts=match.has_parts) if group.grantable else ""
    return Classification(group.effect, group.rule, fault or f"{name} {group.reason}", _guess_paths(rest), grant)


def _find_grant_class(name: str, rest: tuple[Word, ...], *, has_parts: bool) -> str:
    """The commands of one kind: with the sub-command, or the script that is run. Empty if the words do not tell."""
    if " " in name and not name.endswith(" run"):
        return "pytest" if name.endswith(" -m pytest") else name
    if rest and _SUB_COMMAND.match(rest[0].text):
        return f"{name} {rest[0].text}"
    return "" if " " in name or (rest and has_parts) else name


def _classify_unknown_part(name: str, words: tuple[Word, ...]) -> Classification:
    """A program with sub-commands, and an unknown one."""
    part = words[1].text if len(words) > 1 else ""
    if part.startswith("-"):
        return _build_unproven("exec.option", f"{name} with {part} before its sub-command may do anything", words[1:])
    reason = f"handrail does not know what {name} {part}".rstrip() + " does"
    return _build_unproven("exec.unknown", reason, words[1:])  # no grant: an alias may stand for anything


def _build_unproven(rule: str, reason: str, words: tuple[Word, ...], grant: str = "") -> Classification:
    return Classification("unproven", rule, reason, _guess_paths(words), grant)


def _guess_paths(words: tuple[Word, ...]) -> tuple[PathUse, ...]:
    """Each operand and each value of a long option: any of them may be a path."""
    uses: list[PathUse] = []
    for word in words:
        text = word.text.partition("=")[2] if word.text.startswith("--") else word.text
        if text and not text.startswith("-"):
            uses.append(PathUse(text, "read", bool(word.globs), is_certainly_path=False))
    return tuple(uses)


def _cut_grant(name: str) -> str:
    return " ".join(name.split()[:2])
