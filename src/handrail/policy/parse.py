"""Parses a shell command into steps with their effects."""

import posixpath
import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import dropwhile, takewhile
from typing import Literal

import msgspec

from handrail.policy.builtin_denies import Act, list_targets
from handrail.policy.programs.registry import (
    LOOPBACK_RULE,
    PROVEN_STARTERS,
    add_guard_options,
    classify,
    classify_words,
    load_registry,
    skip_timeout,
)
from handrail.policy.programs.spec import SINKS, SOURCES, Classification, PathUse, to_base_name
from handrail.policy.programs.wrapper_table import SHELLS
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import (
    Join,
    Redirection,
    Script,
    SimpleCommand,
    Unparsed,
    render_command,
    to_bash,
)
from handrail.policy.wrappers import list_inner_commands, unwrap
from handrail.protocol.decisions import Access, CommandFact, DisplayedCommand

_GitUse = Literal["none", "alone", "among others"]
"""`alone` if nothing else in the command may print files or run programs."""
CD_RULE = "exec.cd"
UNNAMED = "…"
"""Stands for a word that may be anything, such as a secret."""

_GIT_COMPARISONS = frozenset({"git status", "git diff"})
_GIT_QUIET = frozenset(
    (*("add", "branch", "checkout", "cherry-pick", "commit", "diff", "log", "merge", "mv", "pull", "push", "reset"),
     "restore", "revert", "rm", "stash", "status", "switch", "tag")
)  # fmt: skip
"""Sub-commands that compare files with git's copies, print no whole file, and run no program from their words."""
_FILTERS = frozenset({"head", "tail", "wc", "sort", "uniq", "cut", "tr", "nl", "true", "echo", "cd"})
"""Programs that read only the files they name."""
_GIT_WORD = re.compile(r"\bgit\b")
_BACKGROUND = re.compile(r"(?<![&>|<])&(?![&>])")
_END_OF_JOBS = re.compile(r"\b(?:kill|wait|fg)\b")
_QUOTED = re.compile(
    r"<<-?[ \t]*(['\"]?)(\w+)\1(?P<rest>[^\n]*\n)(?:.*?\n)??\t*\2$|'[^']*'|\"(?:[^\"\\]|\\.)*\"",
    re.DOTALL | re.MULTILINE,
)
"""Here-documents and quoted text."""
_CHECK_RULES = frozenset({"exec.test", "exec.formatter"})
_PROGRAM_NAME = re.compile(r"[A-Za-z0-9_.+\[-]{1,40}")
_UNKNOWN_EFFECTS = frozenset({"unproven", "network"})


class CommandStep(msgspec.Struct, frozen=True):
    """One simple command of a script."""

    words: tuple[str, ...]
    text: str
    classification: Classification
    folders: tuple[str, ...]
    """The folders in which it may run, depending on which `cd` before it succeeds."""
    uses: tuple[PathUse, ...]
    """The paths it uses, relative to the workspace or absolute, for each of the folders."""
    redirections: tuple[PathUse, ...] = ()
    """The files that its streams are redirected to or from."""
    inner: tuple[DisplayedCommand, ...] = ()
    """The commands that it would start."""
    has_unparsed_text: bool = False
    """Whether it would start a text that the lexer cannot parse."""
    is_too_deep: bool = False
    """Whether it would start more commands than policy looks at."""

    @property
    def writes(self) -> tuple[str, ...]:
        """The files that its output is redirected to."""
        return tuple(use.path for use in self.redirections if use.access == "write")

    @property
    def is_read_only(self) -> bool:
        return self.classification.effect == "proven" and not self.writes

    @property
    def has_unknown_effect(self) -> bool:
        return self.classification.effect in _UNKNOWN_EFFECTS

    @property
    def program(self) -> str:
        return name_program(self.words)

    @property
    def compares_or_filters(self) -> bool:
        """Whether it compares files with git's copies, or reads no file."""
        program = self.program
        if program in _GIT_COMPARISONS or (program == "cd" and not self.redirections):
            return True
        return program in _FILTERS and not self.uses and not self.redirections


class ParsedCommand(msgspec.Struct, frozen=True, dict=True):
    """A command with its steps, or with the reason why it has none. What follows from them is worked out once."""

    text: str
    cwd: str
    script: Script | None = None
    steps: tuple[CommandStep, ...] = ()
    unparsed: Unparsed | None = None

    @cached_property
    def is_read_only(self) -> bool:
        """Whether the command only reads, so that the sandbox need not give it anything to change."""
        return self.unparsed is None and all(step.is_read_only for step in self.steps)

    @cached_property
    def reads_loopback(self) -> bool:
        """Whether a command that only reads sends requests to loopback hosts."""
        return any(step.classification.rule == LOOPBACK_RULE for step in self.steps)

    @cached_property
    def bash_text(self) -> str:
        """The text for bash, rewritten from the parse and with the guards of proven commands."""
        if self.script is None:
            return self.text
        if self.is_read_only:
            return to_bash(Script(tuple(map(add_guard_options, self.script.commands)), self.script.joins))
        return to_bash(self.script)

    @cached_property
    def programs(self) -> tuple[str, ...]:
        """The programs that it starts, with their sub-commands: `git status`."""
        if self.unparsed is not None:
            return ("bash",)
        return tuple(dict.fromkeys((*(step.program for step in self.steps), *self._inner_programs)))

    @cached_property
    def _inner_programs(self) -> tuple[str, ...]:
        return tuple(name_program(inner.words) for step in self.steps for inner in step.inner if inner.words)

    @cached_property
    def last_program(self) -> str | None:
        """The program whose exit code is that of the command. None if that is uncertain."""
        if self.unparsed is not None or self.script is None:
            return None
        last_joins = takewhile(lambda join: join != ";", reversed(self.script.joins))
        return self.steps[-1].program if all(join == "|" for join in last_joins) else None

    @cached_property
    def compares_with_git(self) -> bool:
        """Whether it compares files with git's copies, and reads no other file."""
        compares = any(step.program in _GIT_COMPARISONS for step in self.steps)
        return compares and all(step.compares_or_filters for step in self.steps)

    @cached_property
    def git_use(self) -> _GitUse:
        if self.unparsed is not None:
            return "among others" if _GIT_WORD.search(self.text) else "none"
        if not any(program.partition(" ")[0] == "git" for program in self.programs):
            return "none"
        alone = all(_is_quiet_git(step) or step.compares_or_filters for step in self.steps)
        return "alone" if alone else "among others"

    @cached_property
    def is_test_or_lint(self) -> bool:
        """Whether all that may change something are test runners or linters."""
        others = [step for step in self.steps if not step.is_read_only]
        return bool(others) and all(step.classification.rule in _CHECK_RULES and not step.writes for step in others)

    @cached_property
    def may_leave_processes(self) -> bool:
        """Whether the text starts something in the background, and neither ends it nor waits for it."""
        jobs = _BACKGROUND.split(_QUOTED.sub(lambda match: match["rest"] or " ", self.text))
        return len(jobs) > 1 and _END_OF_JOBS.search(jobs[-1]) is None

    @cached_property
    def needs_display(self) -> bool:
        """Whether the display parser should look at the command, because the lexer cannot parse all of it."""
        return self.unparsed is not None or any(step.has_unparsed_text for step in self.steps)

    def cd_targets(self) -> tuple[str, ...]:
        steps = [step for step in self.steps if step.classification.rule == CD_RULE]
        return tuple(dict.fromkeys(use.path for step in steps for use in step.uses))

    def path_uses(self, displayed: tuple[DisplayedCommand, ...] | None = None) -> tuple[PathUse, ...]:
        """The paths whose facts the decision needs. A glob needs the fact of the folder it starts from."""
        uses: list[PathUse] = []
        for step in self.steps:
            uses += (*step.uses, *step.redirections)
            uses += (use for inner in step.inner for at in step.folders for use in list_displayed_uses(inner, at))
        if displayed:
            folder = find_start_folder(displayed, self.cwd)
            uses += (use for inner in expand_inner_commands(displayed) for use in list_displayed_uses(inner, folder))
        return tuple(dict.fromkeys(map(to_fact_use, uses)))

    def word_paths(self, displayed: tuple[DisplayedCommand, ...] | None = None) -> tuple[str, ...]:
        """Every word as the path that it may be, with the words of inner commands. Programs are among them."""
        if self.unparsed is not None:
            placed = [(command.words, (self.cwd,)) for command in expand_inner_commands(displayed or ())]
        else:
            placed = [(step.words, step.folders) for step in self.steps]
            placed += [(inner.words, step.folders) for step in self.steps for inner in step.inner]
        values = [(word.partition("=")[2] or word, folders) for words, folders in placed for word in words]
        paths = [
            to_workspace_path(value, folder) for value, folders in values for folder in folders if value[:1] not in "~-"
        ]
        return tuple(dict.fromkeys((*paths, *(use.path for step in self.steps for use in step.redirections))))


# A call crosses several borders with only its recorded fact: facts, decision, preview, execution. The cache saves the
# parse at each of them.
@lru_cache(maxsize=32)
def parse_command(
    text: str, cwd: str = ".", existing_dirs: tuple[str, ...] = (), *, loopback: bool = False
) -> ParsedCommand:
    """Parse a command that starts in `cwd`. A `cd` to one of the `existing_dirs` is certain to succeed.

    `loopback`: whether loopback hosts are the session's own network.
    """
    script = lex(text)
    if isinstance(script, Unparsed):
        return ParsedCommand(text, cwd, unparsed=script)
    tracker = _DirectoryTracker(cwd, existing_dirs)
    steps: list[CommandStep] = []
    for command, join in zip(script.commands, (*script.joins, ";"), strict=True):
        target = _find_cd_target(command)
        at = tracker.folders
        step = _build_step(command, at, loopback=loopback) if target is None else _build_cd_step(command, target, at)
        steps.append(_mark_piped_shell(step) if tracker.is_piped else step)
        tracker.advance(target, join)
        if tracker.is_lost:
            reason = "changes the folder too often to follow"
            return ParsedCommand(text, cwd, script, unparsed=Unparsed(reason, 0, too_large=True))
    return ParsedCommand(text, cwd, script, tuple(steps))


def parse_fact(fact: CommandFact) -> ParsedCommand:
    return parse_command(fact.text, fact.cwd, fact.there, loopback=fact.loopback)


def name_program(words: tuple[str, ...]) -> str:
    """The program of a command with its known sub-command, without its path."""
    words = skip_timeout(words)
    program = to_base_name(words[0])
    if not _PROGRAM_NAME.fullmatch(program):
        return UNNAMED
    match = load_registry(program).find((program, *words[1:]))
    length = max(match.length, match.group_length, 1) if match else 1
    return " ".join((program, *words[1:length]))


def to_workspace_path(path: str, folder: str) -> str:
    """A path named in a folder, relative to the workspace."""
    return path if path.startswith("/") or folder == "." else f"{folder}/{path}"


def to_fact_use(use: PathUse) -> PathUse:
    """The path whose fact decides about a use. For a glob it is the folder that the glob starts from."""
    if not use.is_glob:
        return PathUse(use.path, use.access)
    names = takewhile(lambda name: not set("*?[") & set(name), use.path.split("/")[:-1])
    folder = "/".join(names) or ("/" if use.path.startswith("/") else ".")
    # A deletion concerns the folder that a link leads to, not the link.
    return PathUse(f"{folder.rstrip('/')}/." if use.access == "delete" else folder, use.access)


# Commands that the display parser found.

_EXPANSION = re.compile(r"[$`*?\[{]")
_MAY_CHANGE_FOLDER = frozenset({"cd", "pushd", "popd", "chdir", "eval", "source", ".", "command", "builtin"})


def find_start_folder(displayed: tuple[DisplayedCommand, ...], cwd: str) -> str | None:
    """The folder that all displayed commands run in. None if one of them may change it."""
    return None if any(command.words and command.words[0] in _MAY_CHANGE_FOLDER for command in displayed) else cwd


def expand_inner_commands(displayed: tuple[DisplayedCommand, ...]) -> Iterator[DisplayedCommand]:
    """The displayed commands, each followed by those that it would start."""
    for command in displayed:
        yield command
        yield from (DisplayedCommand(words=words) for words in list_inner_commands(command.words))


def list_displayed_uses(displayed: DisplayedCommand, folder: str | None) -> tuple[PathUse, ...]:
    """The paths that a displayed command would certainly change. Without a folder, only absolute ones."""
    uses = [PathUse(path, "write") for path in displayed.writes if path not in SINKS]
    if displayed.words:
        classification = classify_words(displayed.words)
        changed = [use for use in classification.uses if use.access != "read" and use.is_certainly_path]
        is_unknown = classification.effect in _UNKNOWN_EFFECTS
        uses = [*changed, *(_list_target_uses(displayed.words) if is_unknown else ()), *uses]
    fixed = [use for use in map(_cut_expansion, uses) if use.path and not use.path.startswith("~")]
    if folder is None:
        return tuple(use for use in fixed if use.path.startswith("/"))
    return tuple(PathUse(to_workspace_path(use.path, folder), use.access, use.is_glob) for use in fixed)


def _cut_expansion(use: PathUse) -> PathUse:
    """A path with an expansion in it, as everything in its fixed folder. Empty without a fixed folder."""
    expansion = _EXPANSION.search(use.path)
    if expansion is None:
        return use
    folder, slash, _ = use.path[: expansion.start()].rpartition("/")
    return PathUse(f"{folder}/*" if slash else "", use.access, is_glob=True)


# Steps.

_ACCESSES: dict[Act, Access] = {"delete": "delete", "rights": "write", "write": "write"}
_STDIN_SHELLS = SHELLS | {"pwsh", "powershell"}


def _build_step(command: SimpleCommand, folders: tuple[str, ...], *, loopback: bool) -> CommandStep:
    classification = classify(command, loopback=loopback)
    words = command.argv
    named = classification.uses
    if classification.effect in _UNKNOWN_EFFECTS:
        globs = frozenset(word.text for word in command.words if word.globs)
        named = (*named, *_list_target_uses(words, globs))
    uses = tuple([_place_use(use, folder) for folder in folders for use in named])
    redirections = tuple(_list_redirections(command, folders))
    step = CommandStep(words, render_command(command), classification, folders, uses, redirections)
    # A program whose table accepts every word starts no other, except these.
    return _add_inner(step) if step.has_unknown_effect or words[0] in PROVEN_STARTERS else step


def _list_target_uses(words: tuple[str, ...], globs: frozenset[str] = frozenset()) -> Iterator[PathUse]:
    for target in list_targets(words):
        is_content = target.act == "delete" and not target.whole  # the folder itself may stay
        path = f"{target.path.rstrip('/')}/*" if is_content else target.path
        yield PathUse(path, _ACCESSES[target.act], is_content or target.path in globs)


def _place_use(use: PathUse, folder: str) -> PathUse:
    path = to_workspace_path(use.path, folder)
    return use if path == use.path else PathUse(path, use.access, use.is_glob, use.is_certainly_path)


def _list_redirections(command: SimpleCommand, folders: tuple[str, ...]) -> Iterator[PathUse]:
    for redirection in command.redirections:
        if redirection.target is not None and not _is_stream(redirection):
            access: Access = "read" if redirection.operator == "<" else "write"
            yield from (PathUse(to_workspace_path(redirection.target.text, folder), access) for folder in folders)


def _is_stream(redirection: Redirection) -> bool:
    target = redirection.target
    return target is not None and target.text in (SOURCES if redirection.operator == "<" else SINKS)


def _add_inner(step: CommandStep) -> CommandStep:
    found = unwrap(step.words)
    if not found.commands and not found.texts:
        return step
    inner = [DisplayedCommand(words=words) for words in found.commands]
    if found.writes:
        inner.append(DisplayedCommand(words=(), writes=found.writes))
    unparsed = any(isinstance(lex(text), Unparsed) for text in found.texts)
    return msgspec.structs.replace(step, inner=tuple(inner), has_unparsed_text=unparsed, is_too_deep=not found.complete)


def _mark_piped_shell(step: CommandStep) -> CommandStep:
    """A shell at the end of a pipe runs a text that the lexer does not see."""
    programs = [words[0].rpartition("/")[2] for words in (step.words, *(inner.words for inner in step.inner)) if words]
    return step if _STDIN_SHELLS.isdisjoint(programs) else msgspec.structs.replace(step, has_unparsed_text=True)


def _is_quiet_git(step: CommandStep) -> bool:
    return step.words[0] == "git" and len(step.words) > 1 and step.words[1] in _GIT_QUIET


# cd.

_MAX_FOLDERS = 16


def _find_cd_target(command: SimpleCommand) -> str | None:
    """The target of a `cd` with one plain operand. Any other `cd` is not followed."""
    words = command.words
    if words[0].text != "cd" or len(words) != 2 or words[1].globs:
        return None
    if any(redirection.target is not None and not _is_stream(redirection) for redirection in command.redirections):
        return None
    return None if words[1].text.startswith("-") or not words[1].text else words[1].text


def _build_cd_step(command: SimpleCommand, target: str, folders: tuple[str, ...]) -> CommandStep:
    places = _resolve_cd(folders, target)
    reason = f"followed: the folder is now {posixpath.normpath(places[-1])}"
    uses = tuple(PathUse(place, "read") for place in places)
    return CommandStep(command.argv, render_command(command), Classification("proven", CD_RULE, reason), folders, uses)


def _resolve_cd(folders: tuple[str, ...], target: str) -> tuple[str, ...]:
    """The folders that `cd` may lead to.

    bash resolves `..` by name. If that folder does not exist, the system resolves it, which follows links first.
    """
    paths = [posixpath.join(folder, target).removeprefix("./") for folder in folders]
    places = [place for path in paths for place in (posixpath.normpath(path), *([path] if _goes_back(path) else ()))]
    return tuple(dict.fromkeys(places))


def _goes_back(path: str) -> bool:
    """Whether a path goes up from a name in it, which may be a link."""
    names = [name for name in path.split("/") if name not in {"", "."}]
    return ".." in dropwhile("..".__eq__, names)


class _DirectoryTracker:
    """The folders that the shell may be in, step by step."""

    def __init__(self, cwd: str, existing_dirs: tuple[str, ...]) -> None:
        self.folders: tuple[str, ...] = (cwd,)
        """The folders in which the next command may run."""
        self.is_piped = False
        """Whether the next command reads the output of the one before."""
        self._existing_dirs = existing_dirs
        self._visited = {cwd: None}
        self._is_alternative = False
        """Whether the next command runs only if the one before fails."""
        self._is_reached = True
        """Whether the next command certainly runs."""

    @property
    def is_lost(self) -> bool:
        return len(self._visited) > _MAX_FOLDERS

    def advance(self, target: str | None, join: Join) -> None:
        """Go to the command after a join. The command before it changes to the target, if there is one."""
        arrived = False
        if target is not None and not self.is_piped and join != "|":  # in a pipeline, `cd` moves only a subshell
            arrived = self._move(_resolve_cd(self.folders, target))
        self.is_piped, self._is_alternative = join == "|", join == "||"
        self._is_reached = join == ";" or (arrived and join == "&&")
        if join in {";", "||"}:  # any earlier command may have failed
            self.folders = tuple(self._visited)

    def _move(self, places: tuple[str, ...]) -> bool:
        """Move to one of the places. True if the shell certainly arrives."""
        if self._is_reached and all(place in self._existing_dirs for place in places):
            self.folders, self._visited = places, dict.fromkeys(places)
            return True
        stayed = self.folders if self._is_alternative else ()
        self.folders = tuple(dict.fromkeys([*stayed, *places]))
        self._visited.update(dict.fromkeys(self.folders))
        return False
