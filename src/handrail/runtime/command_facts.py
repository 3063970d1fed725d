"""What policy needs to know about a command: what it is, where it starts, and what each path in it is now."""

from typing import TYPE_CHECKING

from handrail.policy.parse import ParsedCommand, parse_command
from handrail.policy.programs.spec import PathUse, to_base_name
from handrail.protocol.decisions import CommandFact, DisplayedCommand, Facts, PathFact
from handrail.protocol.errors import ToolError
from handrail.workspace.errors import clip_path
from handrail.workspace.facts import build_command_fact
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.policy.network.needs import NetworkNeeds
    from handrail.sandbox.host import HostLookup

_MAX_PATHS = 1_000
"""Paths that are looked at; those after them count as outside, the strictest there is."""


def collect_command_facts(
    workspace: Workspace,
    text: str,
    cwd: str = ".",
    *,
    background: bool = False,
    yields: bool = False,
    tier: int,
    host: "HostLookup | None" = None,
) -> Facts:
    """The facts of a command. It starts in a folder beneath the roots, or there is nothing to judge: ToolError."""
    _refuse_cwd(workspace, cwd)
    command = parse_command(text, cwd, ())
    seen = _seen(text) if command.needs_display else None
    uses = command.path_uses(seen)
    there = _find_existing_dirs(workspace, command)
    command = parse_command(text, cwd, there) if there else command
    needs = _needs(workspace, command, seen, host)
    return Facts(
        paths=tuple(_fact(workspace, use) if n < _MAX_PATHS else _outside(use) for n, use in enumerate(uses)),
        command=CommandFact(
            text=text,
            cwd=cwd,
            background=background,
            yields=yields,
            tier=tier,
            snapshot=tier == 2 and not (background or yields) and _has_snapshot(command, seen),
            there=there,
            hosts=needs.hosts if needs else (),
            unopened=needs.unreachable if needs else (),
            seen=seen,
        ),
    )


def _find_existing_dirs(workspace: Workspace, command: ParsedCommand) -> tuple[str, ...]:
    """Folders that a `cd` leads to for certain: they are inside, and what is in them can be reached."""
    facts = {folder: _fact(workspace, PathUse(f"{folder}/.", "read")) for folder in command.cd_targets()}
    return tuple(folder for folder, fact in facts.items() if fact.kind == "directory" and fact.real is not None)


def _has_snapshot(command: ParsedCommand, seen: tuple[DisplayedCommand, ...] | None) -> bool:
    """Whether what it changes is kept beforehand, so that undo covers it. Not where it is git that changes something:
    no snapshot holds a repository. Nor below tier 2, where what it does not hold could not be sealed."""
    if command.unparsed is not None:
        if seen is None or any(_is_git(one.words) for one in seen):
            return False
    elif any(_is_git(step.words) and step.classification.effect != "proven" for step in command.steps):
        return False
    from handrail.changes.snapshots.git import find_git  # noqa: PLC0415  only where there is no overlay

    return find_git() is not None


def _is_git(words: tuple[str, ...]) -> bool:
    return bool(words) and to_base_name(words[0]) == "git"


def _needs(
    workspace: Workspace, command: ParsedCommand, seen: tuple[DisplayedCommand, ...] | None, host: "HostLookup | None"
) -> "NetworkNeeds | None":
    """What it needs of the network; None for what only looks, or only does what it says to the files it names."""
    if command.unparsed is None and not any(step.has_unknown_effect for step in command.steps):
        return None
    from handrail.runtime.network_facts import collect_network_needs  # noqa: PLC0415  most commands need none

    return collect_network_needs(workspace, command, seen, host)


def _refuse_cwd(workspace: Workspace, cwd: str) -> None:
    fact = build_command_fact(workspace, cwd, "read")
    if fact.real is None:
        message = f"cwd {clip_path(cwd)} is outside the workspace. Folders are relative to it."
        raise ToolError("OUTSIDE_WORKSPACE", message)
    if fact.kind == "missing":
        raise workspace.not_found(cwd, "folder")
    if fact.kind != "directory":
        raise ToolError("NOT_A_DIRECTORY", f"cwd {clip_path(cwd)} is not a folder.")


def _fact(workspace: Workspace, use: PathUse) -> PathFact:
    try:
        return build_command_fact(workspace, use.path, use.access, past_files=True)
    except ToolError:  # no path can be like this, or nobody can tell where it leads
        return _outside(use)


def _outside(use: PathUse) -> PathFact:
    return PathFact(path=use.path, access=use.access, kind="other", real=None)


def _seen(text: str) -> tuple[DisplayedCommand, ...] | None:
    from handrail.code.shell_commands import find_shell_commands  # noqa: PLC0415  most commands are proven without it

    return find_shell_commands(text)
