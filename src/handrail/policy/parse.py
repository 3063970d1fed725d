"""Parses a command into steps with their effects and paths."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import dropwhile, takewhile
from typing import Literal

import msgspec

from handrail.policy.builtin_denies import Act, CommandTarget, list_targets
from handrail.policy.programs.registry import add_guard_options, classify, load_registry
from handrail.policy.programs.spec import SINKS, Classification, PathUse, to_base_name
from handrail.policy.programs.wrapper_table import SHELLS, WRAPPERS
from handrail.policy.secrets import is_random_value, is_secret_value
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import (
    Join,
    Redirection,
    Script,
    SimpleCommand,
    Unparsed,
    Word,
    render_command,
    to_bash,
)
from handrail.policy.wrappers import list_inner_commands, unwrap
from handrail.protocol.decisions import Access, DisplayedCommand

# § [policy.following] Follows `cd` through a command: every folder that the shell may be in, depending on which
# § commands succeed.

_MAX_FOLDERS = 16


class DirectoryTracker:
    """Where the shell may be, command by command."""

    def __init__(self, cwd: str, there: tuple[str, ...] = ()) -> None:
        self.here: tuple[str, ...] = (cwd,)
        """The folders in which the next command may run."""
        self._there = there
        self._ever = {cwd: None}
        self._piped = self._skipped = False
        self._reached = True
        """Whether the next command runs for certain."""

    @property
    def is_fed(self) -> bool:
        """Whether the next command reads what the one before it says."""
        return self._piped

    @property
    def is_lost(self) -> bool:
        """Whether there are too many folders to look at."""
        return len(self._ever) > _MAX_FOLDERS

    def advance(self, target: str | None, join: Join) -> None:
        """To what stands behind a join; the command before it leads to the target, or moves nothing."""
        arrived = False
        if target is not None and not self._piped and join != "|":  # in a pipeline it moves only a shell of its own
            arrived = self._move(resolve_cd(self.here, target))
        self._piped, self._skipped = join == "|", join == "||"  # behind || it runs only if what is before it fails
        self._reached = join == ";" or (arrived and join == "&&")
        if join in {";", "||"}:  # whatever succeeded before, the shell may be in any of them
            self.here = tuple(self._ever)

    def _move(self, places: tuple[str, ...]) -> bool:
        """Whether the shell is there for certain: the command runs, and every folder it may lead to is there."""
        if self._reached and all(place in self._there for place in places):
            self.here, self._ever = places, dict.fromkeys(places)
            return True
        stayed = self.here if self._skipped else ()
        self.here = tuple(dict.fromkeys([*stayed, *places]))
        self._ever.update(dict.fromkeys(self.here))
        return False


def resolve_cd(folders: tuple[str, ...], target: str) -> tuple[str, ...]:
    """Where `cd` may lead from any of these folders.

    To bash `..` goes by the name, not by where a link leads. But where there is no folder of that name it lets the
    system go there, and to that `..` is the folder above the one that the link leads to.
    """
    ways = [posixpath.join(folder, target).removeprefix("./") for folder in folders]
    places = [place for way in ways for place in (posixpath.normpath(way), *([way] if _turns_back(way) else ()))]
    return tuple(dict.fromkeys(places))


def _turns_back(way: str) -> bool:
    """Whether a path goes up from a name in it, which may be a link."""
    names = [name for name in way.split("/") if name not in {"", "."}]
    return ".." in dropwhile("..".__eq__, names)


# § [policy.script] Reads a whole command: each simple command of it, the folder it runs in, the paths it names.
# § `cd` is followed.

_EMPTY = frozenset({"/dev/null", "/dev/stdin"})
"""What may be read from: who reads from /dev/stdout waits for what only it could write."""
FOLLOWED = "exec.cd"
_EXPANDED = re.compile(r"[$`*?\[{]")
_MOVING = frozenset({"cd", "pushd", "popd", "chdir", "eval", "source", ".", "command", "builtin"})
"""What may change the shell's folder."""
_SPOKEN_TO = SHELLS | {"pwsh", "powershell"}


class CommandStep(msgspec.Struct, frozen=True):
    """One simple command of a script."""

    words: tuple[str, ...]
    shown: str
    reading: Classification
    folders: tuple[str, ...]
    """Where it may run, depending on which `cd` before it succeeds."""
    uses: tuple[PathUse, ...]
    """Those of the reading, relative to the workspace or absolute, for each of the folders."""
    redirected: tuple[PathUse, ...] = ()
    """Where its streams come from and go to, likewise."""
    inner: tuple[DisplayedCommand, ...] = ()
    """The commands that it would start, as far as its words tell."""
    unread: bool = False
    """Whether it would start what the lexer cannot read either."""
    endless: bool = False
    """Whether it would start more than can be looked at."""

    @property
    def writes(self) -> tuple[str, ...]:
        """The files that its output is redirected to."""
        return tuple(use.path for use in self.redirected if use.access == "write")


@lru_cache(maxsize=256)
def parse_steps(text: str, cwd: str, there: tuple[str, ...] = ()) -> tuple[CommandStep, ...] | Unparsed:
    """The steps of a command that starts in a folder, or why nobody can tell from the text what they are. `there`:
    folders that are there, so that a `cd` to one of them succeeds."""
    script = lex(text)
    return script if isinstance(script, Unparsed) else _steps(script, cwd, there)


def list_cd_targets(text: str, cwd: str) -> tuple[str, ...]:
    """The folders that a `cd` of a command may lead to."""
    steps = parse_steps(text, cwd)
    if isinstance(steps, Unparsed):
        return ()
    return tuple(dict.fromkeys(use.path for step in steps if step.reading.rule == FOLLOWED for use in step.uses))


def list_command_uses(text: str, cwd: str, seen: tuple[DisplayedCommand, ...] | None = None) -> tuple[PathUse, ...]:
    """The paths whose facts the decision about a command needs. A glob is about the folder it starts from."""
    steps = parse_steps(text, cwd)
    uses: list[PathUse] = []
    if not isinstance(steps, Unparsed):
        for step in steps:
            uses += (*step.uses, *step.redirected)
            uses += (use for one in step.inner for folder in step.folders for use in list_displayed_uses(one, folder))
    if seen:
        folder = find_start_folder(seen, cwd)
        uses += (use for one in expand_inner_commands(seen) for use in list_displayed_uses(one, folder))
    return tuple(dict.fromkeys(map(to_fact_use, uses)))


def list_word_paths(text: str, cwd: str, seen: tuple[DisplayedCommand, ...] | None = None) -> tuple[str, ...]:
    """Every word of a command, and of those that it would start, as the path that it may be: programs, too. Where a
    command changes its folder in a way that cannot be followed, as from where it starts."""
    steps, redirected = parse_steps(text, cwd), list[str]()
    if isinstance(steps, Unparsed):
        found = [(one.words, (cwd,)) for one in expand_inner_commands(seen or ())]
    else:
        found = [(step.words, step.folders) for step in steps]
        found += [(one.words, step.folders) for step in steps for one in step.inner]
        redirected += (use.path for step in steps for use in step.redirected)
    values = ((word.partition("=")[2] or word, folders) for words, folders in found for word in words)
    paths = (
        to_workspace_path(value, folder) for value, folders in values for folder in folders if value[:1] not in "~-"
    )
    return tuple(dict.fromkeys((*paths, *redirected)))


def needs_display(text: str) -> bool:
    """Whether the display parser should look at a command: only where ours cannot."""
    steps = parse_steps(text, ".")
    return isinstance(steps, Unparsed) or any(step.unread for step in steps)


def find_start_folder(seen: tuple[DisplayedCommand, ...], cwd: str) -> str | None:
    """The folder that all commands run in which the display parser saw; None where one of them may change it."""
    return None if any(one.words and one.words[0] in _MOVING for one in seen) else cwd


def expand_inner_commands(seen: tuple[DisplayedCommand, ...]) -> Iterator[DisplayedCommand]:
    """The commands that the display parser saw, and those that they would start."""
    for one in seen:
        yield one
        yield from (DisplayedCommand(words=words) for words in list_inner_commands(one.words))


def list_displayed_uses(seen: DisplayedCommand, folder: str | None) -> tuple[PathUse, ...]:
    """Paths that a command would change which the display parser saw, as far as they are certain."""
    found: list[PathUse] = []
    if seen.words:
        command = build_simple_command(seen.words)
        reading = classify(command)
        found += [use for use in reading.uses if use.access != "read" and use.is_certainly_path]
        found += _changed(command, reading)
    found += [PathUse(path, "write") for path in seen.writes if path not in SINKS]
    fixed = [use for use in map(_as_far_as_fixed, found) if use.path and not use.path.startswith("~")]
    if folder is None:
        return tuple(use for use in fixed if use.path.startswith("/"))
    return tuple(PathUse(to_workspace_path(use.path, folder), use.access, use.is_glob) for use in fixed)


def _as_far_as_fixed(use: PathUse) -> PathUse:
    """A path that something in it is expanded in, as all that is in the folder it is fixed to; nothing without one."""
    signs = _EXPANDED.search(use.path)
    if signs is None:
        return use
    folder, slash, _ = use.path[: signs.start()].rpartition("/")
    return PathUse(f"{folder}/*" if slash else "", use.access, is_glob=True)


_ACCESSES: dict[Act, Access] = {"delete": "delete", "rights": "write", "write": "write"}


def _changed(command: SimpleCommand, reading: Classification) -> list[PathUse]:
    """The paths that a command would change by what its words seem to say, where no table tells it for certain."""
    if reading.effect not in {"unproven", "network"}:
        return []
    patterns = {word.text for word in command.words if word.globs}
    return [_use_of(target, patterns) for target in list_targets(tuple([word.text for word in command.words]))]


def _use_of(target: CommandTarget, patterns: set[str]) -> PathUse:
    """What is deleted in a folder, while the folder may stay, is named by a pattern."""
    within = target.act == "delete" and not target.whole
    path = f"{target.path.rstrip('/')}/*" if within else target.path
    return PathUse(path, _ACCESSES[target.act], within or target.path in patterns)


def to_fact_use(use: PathUse) -> PathUse:
    """The path whose fact speaks for a use: of a glob, the folder it starts from."""
    if not use.is_glob:
        return PathUse(use.path, use.access)
    folder = _fixed_folder(use.path)
    # What is deleted is in the folder that a link leads to, and not the link.
    return PathUse(f"{folder.rstrip('/')}/." if use.access == "delete" else folder, use.access)


def _fixed_folder(pattern: str) -> str:
    """The folder that a glob starts from: the names before the first one with a wildcard."""
    names: list[str] = []
    for name in pattern.split("/")[:-1]:
        if set("*?[") & set(name):
            break
        names.append(name)
    return "/".join(names) or ("/" if pattern.startswith("/") else ".")


def build_simple_command(words: tuple[str, ...]) -> SimpleCommand:
    """Words as a command that nothing is expanded in."""
    return SimpleCommand(tuple(Word(word) for word in words))


def _steps(script: Script, cwd: str, there: tuple[str, ...]) -> tuple[CommandStep, ...] | Unparsed:
    following = DirectoryTracker(cwd, there)
    steps: list[CommandStep] = []
    for number, command in enumerate(script.commands):
        target = _target(command)
        here = following.here
        step = _step(command, here) if target is None else _followed(command, target, here)
        steps.append(_fed(step) if following.is_fed else step)
        following.advance(target, script.joins[number] if number < len(script.joins) else ";")
        if following.is_lost:
            return Unparsed("changes the folder so often that nobody can follow it", 0, too_large=True)
    return tuple(steps)


def _step(command: SimpleCommand, folders: tuple[str, ...]) -> CommandStep:
    reading = classify(command)
    named = (*reading.uses, *_changed(command, reading))
    uses = [_seen_from(folder, use) for folder in folders for use in named]
    words = tuple([word.text for word in command.words])
    step = CommandStep(words, render_command(command), reading, folders, tuple(uses), _redirected(command, folders))
    # What a table knows word by word starts nothing else.
    return _with_inner(step) if reading.effect in {"unproven", "network"} else step


def _seen_from(folder: str, use: PathUse) -> PathUse:
    path = to_workspace_path(use.path, folder)
    return use if path == use.path else PathUse(path, use.access, use.is_glob, use.is_certainly_path)


def _redirected(command: SimpleCommand, folders: tuple[str, ...]) -> tuple[PathUse, ...]:
    found: list[PathUse] = []
    for redirection in command.redirections:
        if redirection.target is None or _is_stream(redirection):
            continue
        access: Access = "read" if redirection.operator == "<" else "write"
        found += [PathUse(to_workspace_path(redirection.target.text, folder), access) for folder in folders]
    return tuple(found)


def _fed(step: CommandStep) -> CommandStep:
    """A shell that another command speaks to starts what that command says, which the lexer does not look for."""
    programs = [words[0].rpartition("/")[2] for words in (step.words, *(one.words for one in step.inner)) if words]
    return step if _SPOKEN_TO.isdisjoint(programs) else msgspec.structs.replace(step, unread=True)


def _with_inner(step: CommandStep) -> CommandStep:
    found = unwrap(step.words)
    if not found.commands and not found.texts:
        return step
    inner = [DisplayedCommand(words=words) for words in found.commands]
    if found.writes:
        inner.append(DisplayedCommand(words=(), writes=found.writes))
    unread = any(isinstance(lex(text), Unparsed) for text in found.texts)
    return msgspec.structs.replace(step, inner=tuple(inner), unread=unread, endless=not found.complete)


def to_workspace_path(path: str, folder: str) -> str:
    """A path that is named in a folder, as it is named from the workspace."""
    return path if path.startswith("/") or folder == "." else f"{folder}/{path}"


def _target(command: SimpleCommand) -> str | None:
    """Where a `cd` leads that can be followed: one plain operand, and nothing else."""
    words = command.words
    if words[0].text != "cd" or len(words) != 2 or words[1].globs or not _keeps_streams(command):
        return None
    return None if words[1].text.startswith("-") or not words[1].text else words[1].text


def _keeps_streams(command: SimpleCommand) -> bool:
    return all(one.target is None or _is_stream(one) for one in command.redirections)


def _is_stream(redirection: Redirection) -> bool:
    target = redirection.target
    return target is not None and target.text in (_EMPTY if redirection.operator == "<" else SINKS)


def _followed(command: SimpleCommand, target: str, folders: tuple[str, ...]) -> CommandStep:
    places = resolve_cd(folders, target)
    reading = Classification("proven", FOLLOWED, f"followed, the folder is {posixpath.normpath(places[-1])}")
    uses = tuple(PathUse(place, "read") for place in places)
    return CommandStep(tuple(word.text for word in command.words), render_command(command), reading, folders, uses)


# § [policy.confinement] What a command is to the sandbox and the audit: the text for bash, whether it only looks,
# § the programs it starts.

_UNREADABLE = ("bash",)
_PLAIN = re.compile(r"[A-Za-z0-9_.+\[-]{1,40}")
_NAMELESS = "…"
_OPTION = re.compile(r"(--[a-z][a-z-]{0,30}(?:=|\Z)|-[A-Za-z]{1,2}\Z|-[A-Za-z]=?)(.*)", re.DOTALL)
"""The name of an option, and what may be its value. A longer word behind one dash may be both: `-psecret`."""
_MAX_OUTLINE_CHARS = 300
_GIT_WORD = re.compile(r"\bgit\b")
_COMPARING = frozenset({"git status", "git diff"})
_KEEPING = frozenset(
    (*("add", "branch", "checkout", "cherry-pick", "commit", "diff", "log", "merge", "mv", "pull", "push", "reset"),
     "restore", "revert", "rm", "stash", "status", "switch", "tag")
)  # fmt: skip
"""What of git compares files with what it has of them, prints no file as it is, and runs nothing that it is told."""
_FILTERS = frozenset({"head", "tail", "wc", "sort", "uniq", "cut", "tr", "nl", "true", "echo", "cd"})
"""What reads no file but those that it names."""


class RunnableCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command as it is run."""

    bash_text: str
    """For bash: what was read in the command, written anew, with the guards of what is proven; where it cannot be read,
    the command as it is."""
    is_read_only: bool
    """Whether it only looks, whatever is there: nothing that it could change needs to be within its reach."""
    programs: tuple[str, ...]
    """What it starts, as far as that is known, by name and sub-command and without arguments: `git status`."""
    last: str | None
    """The program whose exit code is that of the whole, where that is certain."""
    compares: bool = False
    """Whether it compares files with what git has of them, and looks at no other file."""
    git: Literal["none", "alone", "among others"] = "none"
    """Whether it uses git, as far as its words tell, and whether something else of it may print files or run more."""


@lru_cache(maxsize=256)
def build_runnable(text: str, cwd: str, there: tuple[str, ...] = ()) -> RunnableCommand:
    """How a command is run that starts in a folder; `there` are the folders that a `cd` in it leads to for certain."""
    script, steps = lex(text), parse_steps(text, cwd, there)
    if isinstance(script, Unparsed):
        return RunnableCommand(bash_text=text, is_read_only=False, programs=_UNREADABLE, last=None, git=_git_in(text))
    if isinstance(steps, Unparsed):
        return RunnableCommand(
            bash_text=to_bash(script), is_read_only=False, programs=_UNREADABLE, last=None, git=_git_in(text)
        )
    named = [_named(step.words) for step in steps]
    inner = [_named(one.words) for step in steps for one in step.inner if one.words]
    proven = all(map(_only_looks, steps))
    return RunnableCommand(
        bash_text=to_bash(Script(tuple(map(add_guard_options, script.commands)), script.joins) if proven else script),
        is_read_only=proven,
        programs=tuple(dict.fromkeys([*named, *inner])),
        last=named[-1] if _decides(script) else None,
        compares=any(name in _COMPARING for name in named) and all(map(_compares_or_reads_nothing, steps, named)),
        git=_git_of(steps, named, inner),
    )


def _git_in(text: str) -> Literal["none", "among others"]:
    """Of a command that cannot be read."""
    return "among others" if _GIT_WORD.search(text) else "none"


def _git_of(
    steps: Sequence[CommandStep], named: list[str], inner: list[str]
) -> Literal["none", "alone", "among others"]:
    if not any(name.partition(" ")[0] == "git" for name in (*named, *inner)):
        return "none"
    pairs = zip(steps, named, strict=True)
    alone = all(_keeps_to_git(step) or _compares_or_reads_nothing(step, name) for step, name in pairs)
    return "alone" if alone else "among others"


def _keeps_to_git(step: CommandStep) -> bool:
    return step.words[0] == "git" and len(step.words) > 1 and step.words[1] in _KEEPING


def _compares_or_reads_nothing(step: CommandStep, name: str) -> bool:
    if name == "cd" and not step.redirected:
        return True
    return name in _COMPARING or (name in _FILTERS and not step.uses and not step.redirected)


def _only_looks(step: CommandStep) -> bool:
    return step.reading.effect == "proven" and not step.writes


def _decides(script: Script) -> bool:
    """Whether the last command runs for certain: nothing but pipes between it and the `;` before it."""
    return all(join == "|" for join in takewhile(lambda join: join != ";", reversed(script.joins)))


def _named(words: tuple[str, ...]) -> str:
    """A program by its own name; what is none is not told, since it may be anything."""
    program = to_base_name(words[0])
    if not _PLAIN.fullmatch(program):
        return _NAMELESS
    found = load_registry(program).find((program, *words[1:]))
    length = max(found.length, found.group_length, 1) if found else 1
    return " ".join((program, *words[1:length]))


def outline_command(text: str, seen: tuple[DisplayedCommand, ...] | None = None) -> str:
    """A command by its programs, sub-commands and option names; `…` stands for all else, which may be secret. The
    commands that a program starts follow it in brackets. `seen`: what the display parser found in the text."""
    script = lex(text)
    if isinstance(script, Unparsed):
        return _outline_unparsed(seen)
    parts: list[str] = []
    for command, join in zip(script.commands, (*script.joins, ""), strict=True):
        parts.append(_outline_nested(tuple([word.text for word in command.words]), seen))
        parts += [f"{one.operator} {_NAMELESS if one.target else ''}".rstrip() for one in command.redirections]
        parts.append(join)
    outline = " ".join(parts).rstrip()
    return outline if len(outline) <= _MAX_OUTLINE_CHARS else outline[: _MAX_OUTLINE_CHARS - 1] + _NAMELESS


def _outline_unparsed(seen: tuple[DisplayedCommand, ...] | None) -> str:
    found = (_outline(one.words[:1], is_certain=False) for one in expand_inner_commands(seen or ()) if one.words)
    programs = [name for name in dict.fromkeys(found) if name != _NAMELESS]
    return "command not parsed" + (f": {', '.join(programs)}" if programs else "")


def _outline_nested(words: tuple[str, ...], seen: tuple[DisplayedCommand, ...] | None) -> str:
    found = unwrap(words)
    inner = [_outline(_without_inner(one, found.commands), is_certain=False) for one in found.commands]
    if any(isinstance(lex(text), Unparsed) for text in found.texts):
        inner.append(_outline_unparsed(seen))
    outer = _outline(_without_inner(words, found.commands), is_certain=True)
    return f"{outer} ({'; '.join(inner)})" if inner else outer


def _without_inner(words: tuple[str, ...], commands: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """The words of a wrapper without those of the command that it starts."""
    lengths = [len(one) for one in commands if len(one) < len(words) and words[-len(one) :] == one]
    return words[: len(words) - max(lengths, default=0)]


def _outline(words: tuple[str, ...], *, is_certain: bool) -> str:
    """One simple command. Its first word is shown if it is the program for certain, or a program that is known."""
    name, program = _named(words), to_base_name(words[0])
    is_known = program in SHELLS or program in WRAPPERS or load_registry(program).find((program,)) is not None
    if is_secret_value(name) or is_random_value(name) or not (is_certain or is_known):
        name = _NAMELESS
    shown, ended = [name], False
    for word in words[len(name.split()) :]:
        ended = ended or word == "--"
        found = None if ended else _OPTION.match(word)
        option = found[1] + (found[2] and _NAMELESS) if found else _NAMELESS
        if option != _NAMELESS or shown[-1] != _NAMELESS:
            shown.append(option)
    return " ".join(shown)
