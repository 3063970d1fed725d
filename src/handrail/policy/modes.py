"""What each mode says where no rule does: one table."""

from typing import Literal

from handrail.protocol.decision import Mode, Verdict

Subject = Literal[
    "proven", "unproven", "write", "delete", "bulk", "protected", "outside", "network", "process", "foreign"
]
"""What a part of a call does. `proven`: it only looks. `unproven`: it may do anything to the workspace. `process`: it
outlives its call. `outside`: it is about a path that no root holds. `foreign`: another server does it."""
Cell = Literal["allow", "confirm", "deny", "undoable"]
"""`undoable`: allowed where undo covers it, confirmed otherwise."""

TABLE: dict[Subject, dict[Mode, Cell]] = {
    "proven": {"plan": "allow", "ask": "allow", "auto": "allow", "full": "allow"},
    "unproven": {"plan": "deny", "ask": "confirm", "auto": "undoable", "full": "allow"},
    "write": {"plan": "deny", "ask": "confirm", "auto": "undoable", "full": "allow"},
    "delete": {"plan": "deny", "ask": "confirm", "auto": "undoable", "full": "allow"},
    "bulk": {"plan": "deny", "ask": "confirm", "auto": "confirm", "full": "allow"},
    "protected": {"plan": "deny", "ask": "confirm", "auto": "confirm", "full": "allow"},
    "outside": {"plan": "deny", "ask": "deny", "auto": "deny", "full": "deny"},
    "network": {"plan": "deny", "ask": "confirm", "auto": "confirm", "full": "allow"},
    "process": {"plan": "deny", "ask": "confirm", "auto": "confirm", "full": "allow"},
    "foreign": {"plan": "deny", "ask": "confirm", "auto": "confirm", "full": "allow"},
}

REASONS: dict[tuple[Subject, Verdict], str] = {
    ("unproven", "deny"): "plan mode runs nothing that is not proven harmless",
    ("unproven", "confirm"): "what it does is not proven harmless",
    ("write", "deny"): "plan mode changes nothing",
    ("write", "confirm"): "writes ask in ask mode",
    ("delete", "deny"): "plan mode changes nothing",
    ("delete", "confirm"): "deletions ask in ask mode",
    ("bulk", "deny"): "plan mode changes nothing",
    ("bulk", "confirm"): "so many files at once ask",
    ("protected", "deny"): "plan mode changes nothing",
    ("protected", "confirm"): "this file steers tools, hooks or builds, so changing it asks",
    ("outside", "deny"): "the path leads outside the workspace",
    ("network", "deny"): "plan mode reaches no network",
    ("network", "confirm"): "the network asks",
    ("process", "deny"): "plan mode leaves nothing running",
    ("process", "confirm"): "what goes on after the call asks, since undo does not cover it",
    ("foreign", "deny"): "plan mode calls no other server, but for tools that the settings vouch for",
    ("foreign", "confirm"): "what another server does asks",
}
NOT_COVERED = "undo would not cover it, so it asks"


def apply_mode(subject: Subject, mode: Mode, *, undo: bool) -> tuple[Verdict, str]:
    """The verdict of a mode on a subject, with the reason in words; `undo`: whether it could be undone."""
    cell = TABLE[subject][mode]
    if cell == "undoable":
        return ("allow", f"{mode} mode allows what undo covers") if undo else ("confirm", NOT_COVERED)
    return cell, REASONS.get((subject, cell)) or ("it only reads" if subject == "proven" else f"{mode} mode allows it")
