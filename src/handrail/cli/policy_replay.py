"""policy replay: which calls of before would be decided otherwise today."""

import os
from argparse import Namespace

from msgspec import structs

from handrail.cli.context import open_state_folder, resolve_workspace_session
from handrail.cli.exits import OK
from handrail.cli.format import format_time
from handrail.cli.output import can_show, print_json, print_note, print_out, render_table, warn
from handrail.cli.policy_place import PolicyWorkspace
from handrail.protocol.text import truncate
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import encode
from handrail.runtime.explain import DecisionChange, PolicyReplay, replay
from handrail.tools.exec.spec import EXEC

_HEAD = ("time", "session", "tool", "subject", "then", "", "now", "rule")


def run(options: Namespace) -> int:
    """Judges them again, and shows those that differ."""
    place = PolicyWorkspace(options, options.mode)
    workspace = os.path.realpath(place.workspace)
    offer, rules = place.offer(), place.rules()

    def spec_of(name: str) -> ToolSpec | None:
        tool = offer.get_registered(name)
        return EXEC if name == EXEC.name else tool.spec if tool else None

    one = options.session
    folders = open_state_folder().sessions(workspace) if one is None else [resolve_workspace_session(workspace, one)]
    found = replay(folders, spec_of, rules, options.since, options.mode)
    if options.json:
        told = {"schema": "handrail.policy/1", "mode": options.mode, "since": options.since, "sessions": len(folders)}
        print_json(encode({**told, **structs.asdict(found)}))
        return OK
    print_out(f"{len(found.differ):,} of {_calls(found.calls)} would differ{_in_mode(options.mode)}\n{_table(found)}")
    _print_notes(found)
    return OK


def _in_mode(mode: str | None) -> str:
    return f" in mode {mode}" if mode else ""


def _table(found: PolicyReplay) -> str:
    return render_table([_HEAD, *map(_row, found.differ)]) if found.differ else ""


def _row(one: DecisionChange) -> tuple[str, ...]:
    arrow = "→" if can_show("→") else "->"
    return format_time(one.time), one.session, one.tool, truncate(one.subject, 60), one.then, arrow, one.now, one.rule


def _print_notes(found: PolicyReplay) -> None:
    """What is not among the calls that were judged again, and why."""
    if found.unjudged:
        print_note(f"{_calls(found.unjudged)} left out: refused before policy was asked")
    for name, number in found.gone.items():
        print_note(f"{_calls(number)} of {truncate(name, 80)} left out: no tool of that name is offered")
    if found.broken:
        warn(f"{_calls(found.broken)} left out: the record cannot be read")
    for problem in found.unreadable:
        warn(f"a session left out: {problem}")


def _calls(number: int) -> str:
    return f"{number:,} call" if number == 1 else f"{number:,} calls"
