"""Commands that run the code or the command they are given: an allow rule cannot speak of them as a whole."""

from handrail.policy.commands.wrappers import GIT_VALUES, WRAPPERS
from handrail.policy.rules.prefix import Prefix, build_prefix, is_about
from handrail.policy.tables.groups import GROUPS

_RUNNING = [name for group in GROUPS if group.rule in {"exec.interpreter", "exec.wrapper"} for name in group.programs]
_ALWAYS = frozenset(name.casefold() for name in _RUNNING if " " not in name)
_STARTERS = tuple(
    build_prefix(tuple(name.split())) for name in sorted({*_RUNNING, *WRAPPERS}) if name.casefold() not in _ALWAYS
)
"""They start what follows them: a rule may name that, but must name it."""
_VERSION = "0123456789.-"


def can_run_code(words: tuple[str, ...]) -> bool:
    """Whether commands that begin with these words run whatever comes next, by any path and in any version."""
    program = words[0].rpartition("/")[2]
    name = program.casefold()
    if name in _ALWAYS or name.rstrip(_VERSION) in _ALWAYS:
        return True
    for starter in _STARTERS:
        size = len(starter.words)
        if starter.words[0] == program and is_about(starter, words):
            started = words[size:] if words[1:size] == starter.words[1:] else ()
            return not started or started[0].startswith("-") or can_run_code(started)
    return False


_STEERING = ("-c", "--config-env", "--exec-path", "--git-dir", "--work-tree")
"""What git takes before its sub-command that makes it run something else, or work on another repository."""


def has_git_global_options(wanted: Prefix, words: tuple[str, ...]) -> bool:
    """Whether a command begins with options for git as a whole that a rule for git as a whole did not name."""
    if wanted.names or words[0].rpartition("/")[2] != "git":
        return False
    place = len(wanted.words)
    while place < len(words) and words[place].startswith("-"):
        if words[place].startswith(_STEERING):
            return True
        place += 2 if words[place] in GIT_VALUES else 1
    return False


def list_starters(wanted: Prefix) -> tuple[Prefix, ...]:
    """What starts other programs and begins as a pattern does: `uv run`, for a rule that allows `uv`."""
    program, names = wanted.words[0].rpartition("/")[2], wanted.names
    return tuple(
        starter
        for starter in _STARTERS
        if starter.words[0] == program and starter.names[: len(names)] == names and len(starter.names) > len(names)
    )
