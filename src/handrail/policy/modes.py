"""What each mode says where no rule does: one table."""

from handrail.protocol.decision import Mode, Verdict

Subject = str
"""What a part of a call is: read, write, delete, protected, command, foreign or network."""

TABLE: dict[Subject, dict[Mode, Verdict]] = {
    "read": {"plan": "allow", "ask": "allow", "auto": "allow", "full": "allow"},
    "write": {"plan": "deny", "ask": "confirm", "auto": "allow", "full": "allow"},
    "delete": {"plan": "deny", "ask": "confirm", "auto": "confirm", "full": "allow"},
    "protected": {"plan": "deny", "ask": "confirm", "auto": "confirm", "full": "allow"},
    "command": {"plan": "deny", "ask": "confirm", "auto": "confirm", "full": "allow"},
    "foreign": {"plan": "deny", "ask": "confirm", "auto": "allow", "full": "allow"},
    "network": {"plan": "deny", "ask": "confirm", "auto": "confirm", "full": "allow"},
}

REASONS: dict[tuple[Subject, Verdict], str] = {
    ("write", "deny"): "plan mode changes nothing",
    ("write", "confirm"): "writes ask in ask mode",
    ("delete", "deny"): "plan mode changes nothing",
    ("delete", "confirm"): "deletions ask",
    ("protected", "deny"): "plan mode changes nothing",
    ("protected", "confirm"): "this file steers tools, hooks or builds, so changing it asks",
    ("command", "deny"): "plan mode runs nothing that is not proven harmless",
    ("command", "confirm"): "commands ask",
    ("foreign", "deny"): "plan mode runs no custom tool that does not run by itself",
    ("foreign", "confirm"): "custom tools ask unless they may run by themselves",
    ("network", "deny"): "plan mode reaches no network",
    ("network", "confirm"): "the network asks",
}


def by_mode(subject: Subject, mode: Mode) -> tuple[Verdict, str]:
    """The verdict of a mode on a subject, with the reason in words."""
    verdict = TABLE[subject][mode]
    return verdict, REASONS.get((subject, verdict), f"{subject} is allowed in {mode} mode")
