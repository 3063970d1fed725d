"""The titles of calls while they run."""

from typing import Any

from handrail.protocol.text import clip_text, to_one_line

_MAX_CHARS = 100
_FORMS = {
    "read": ("Reading", "path"),
    "write": ("Writing", "path"),
    "append": ("Writing", "path"),
    "edit": ("Editing", "path"),
    "multi_edit": ("Editing", "path"),
    "delete": ("Deleting", "path"),
    "ls": ("Listing", "path"),
    "find": ("Searching:", "pattern"),
    "grep": ("Searching:", "pattern"),
    "search_text": ("Searching:", "pattern"),
    "exec": ("Running:", "command"),
    "process": ("Process:", "action"),
    "code_outline": ("Outlining", "path"),
    "code_analyze": ("Analyzing", "path"),
    "code_symbols": ("Listing symbols of", "path"),
    "code_format": ("Formatting", "path"),
    "skill_control": ("Skill:", "name"),
}
"""By the tool: the verb, and the argument behind it."""
_PLAIN = {
    "apply_patch": "Applying a patch",
    "code_lint": "Checking files",
    "lsp_lint": "Checking files",
    "todo": "Updating the list",
    "memory": "Updating the notes",
}


def describe_running_call(name: str, args: Any) -> str | None:
    """What a call of a built-in tool does now: `Reading a.ts`. None for other tools."""
    verb, argument = _FORMS.get(name, ("", ""))
    given = args.get(argument) if isinstance(args, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if not isinstance(given, str):
        return _PLAIN.get(name)
    subject = given.rstrip("/").rpartition("/")[2] or given if argument == "path" else given
    return f"{verb} {clip_text(to_one_line(subject), _MAX_CHARS)}"
