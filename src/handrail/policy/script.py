"""Reads a whole command: each simple command of it, the folder it runs in, the paths it names. `cd` is followed."""

import posixpath
import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from handrail.policy.commands.places import SINKS
from handrail.policy.commands.reader import classify
from handrail.policy.commands.reading import Classification, PathUse
from handrail.policy.commands.targets import Act, CommandTarget, list_targets
from handrail.policy.commands.wrapped import list_inner_commands, unwrap
from handrail.policy.commands.wrappers import SHELLS
from handrail.policy.following import DirectoryTracker, resolve_cd
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.script import Redirection, Script, SimpleCommand, Unparsed, Word
from handrail.policy.shell.shown import render_command
from handrail.protocol.decision import Access, DisplayedCommand

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
