"""The commands of a shell as slash commands, for hints that a person reads in a session."""

import re

IN_SESSION = "HANDRAIL_IN_SESSION"
"""The variable of a command whose output a session shows."""
_FORMS = (
    (re.compile(r"; every workspace: --all"), ""),
    (re.compile(r"handrail approvals (?:allow|deny|reply|retry)\b[^\n;]*"), "/continue"),
    (re.compile(r"handrail log --sessions"), "/resume"),
    (re.compile(r"handrail (log|diff|undo) --(changes|turn)\b"), r"/\1 \2"),
    (re.compile(r"handrail (log|diff|undo|doctor|skills|approvals)\b(?! -)"), r"/\1"),
    (re.compile(r"handrail processes\b(?! (?:-|write|forward))"), "/ps"),
    (re.compile(r"handrail policy (explain|modes)\b(?! -)"), r"/policy \1"),
)


def to_slash_commands(text: str) -> str:
    """The text with slash commands instead of those of the shell."""
    if "handrail" in text or "--all" in text:
        for pattern, form in _FORMS:
            text = pattern.sub(form, text)
    return text
