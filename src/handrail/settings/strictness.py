"""Which of two values of a setting is the stricter one, and which layers may make it looser."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from handrail.protocol.decision import MODES
from handrail.settings.ranges import parse_amount

LayerKind = Literal["managed", "user", "project", "session", "environment", "flag", "default"]
Meet = Callable[[Any, Any], Any]
"""Of the value below and the one above it, the loosest value that is as strict as both."""

TRUSTED_SOURCES: tuple[LayerKind, ...] = ("managed", "user", "project", "session", "flag")
"""The project once it is trusted. The environment never: whatever starts a process can set it."""
USER_SOURCES: tuple[LayerKind, ...] = ("managed", "user", "flag")
FILE_SOURCES: tuple[LayerKind, ...] = ("managed", "user")
ALL_SOURCES: tuple[LayerKind, ...] = (*TRUSTED_SOURCES, "environment")


class Strictness(msgspec.Struct, frozen=True):
    """How one setting is tightened; `why` says what is at stake."""

    merge_strict: Meet
    why: str
    loosened_by: tuple[LayerKind, ...] = TRUSTED_SOURCES
    reserved: tuple[object, ...] = ()
    """Values that only a person may give, even where others may loosen."""


def may_loosen(kind: LayerKind, key: str, value: object) -> bool:
    """Whether a layer, trusted as far as it can be, may give this value where it is looser than what is below."""
    rule = STRICTNESS[key]
    return kind in rule.loosened_by and (value not in rule.reserved or kind in USER_SOURCES)


def _first(*strictest_first: object) -> Meet:
    return lambda below, above: min(below, above, key=strictest_first.index)


def _least(below: int, above: int) -> int:
    return min(below, above)


def _most(below: int, above: int) -> int:
    return max(below, above)


def _least_of_some(below: int | None, above: int | None) -> int | None:
    """None is as much as there is."""
    given = [one for one in (below, above) if one is not None]
    return min(given, default=None)


def _smaller(name: str) -> Meet:
    return lambda below, above: min(above, below, key=lambda written: parse_amount(name, written))


def _all_of(below: tuple[str, ...], above: tuple[str, ...]) -> tuple[str, ...]:
    return (*below, *(item for item in above if item not in below))


def _common(below: tuple[str, ...], above: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(item for item in above if item in below)


def _in_both(below: tuple[str, ...], above: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts that both lists have, be it that one says it in fewer words: `*.example.org`."""
    if not below or not above:
        return ()
    from handrail.policy.network.entries import parse_host_pattern  # noqa: PLC0415 - only where somebody lists one
    from handrail.policy.network.listed import Allowlist  # noqa: PLC0415

    def inside(those: tuple[str, ...], these: tuple[str, ...]) -> list[str]:
        listed = Allowlist.from_entries(these)
        return [entry for entry in those if listed.holds(parse_host_pattern(entry))]

    return tuple(dict.fromkeys([*inside(above, below), *inside(below, above)]))


def _as_below(below: object, above: object) -> object:  # noqa: ARG001  whatever it is, it does not count
    return below


STRICTNESS: dict[str, Strictness] = {
    "mode": Strictness(_first(*MODES), "a looser mode asks less", reserved=("full",)),
    "model": Strictness(_as_below, "whoever answers reads what the model is shown of the workspace", ALL_SOURCES),
    "preview": Strictness(_first("never", "when-asked"), "what is tried runs before anybody said yes, be it in a copy"),
    "profile": Strictness(_first("restricted", "standard"), "restricted runs a short list of commands"),
    "tools.enable": Strictness(_common, "another tool is another way to act"),
    "tools.disable": Strictness(_all_of, "a tool that is off does nothing"),
    "tools.deny": Strictness(_all_of, "a permission that is missing cannot be used"),
    "tools.folders": Strictness(
        _common,
        "its files run in this process, and may be others by the next start than those one trusted",
        USER_SOURCES,
    ),
    "tools.installed": Strictness(_first(False, True), "code of other packages runs in this process"),
    "skills.enabled": Strictness(_first(False, True), "a skill is text that the model goes by"),
    "skills.folders": Strictness(_common, "what is there is told to the model as the person's own", USER_SOURCES),
    "skills.disable": Strictness(_all_of, "a skill that is off says nothing"),
    "read.images": Strictness(_first(False, True), "an image costs, and can carry words to the model"),
    "results.characters": Strictness(_least, "more of a result costs more, and crowds out the person's words"),
    "results.batch_characters": Strictness(_least, "as above"),
    "journal.durability": Strictness(_first("power", "crash"), "power loses less"),
    "store.keep": Strictness(
        _as_below, "how long the person's state folder keeps things is the person's", USER_SOURCES
    ),
    "events.jsonl": Strictness(_as_below, "it writes into the workspace whatever was said, unasked", FILE_SOURCES),
    "paths.read_only": Strictness(_common, "another root is more to read"),
    "paths.writable": Strictness(_common, "another root is more to change"),
    "paths.outside": Strictness(_first("deny", "ask"), "asking lets somebody say yes", FILE_SOURCES),
    "paths.client_roots": Strictness(
        _first("ignore", "read-only", "writable"), "a client's folders are more to read and to change", USER_SOURCES
    ),
    "bulk.deleted": Strictness(_least, "a higher number asks later"),
    "bulk.changed": Strictness(_least, "a higher number asks later"),
    "bulk.bytes": Strictness(_smaller("file_size"), "a higher number asks later"),
    "restricted.commands": Strictness(_common, "another command is more that runs unasked"),
    "restricted.folders": Strictness(_common, "another folder is more to read and write"),
    "search.ignore": Strictness(_all_of, "what is skipped is not shown; it can still be read by name"),
    "search.engine": Strictness(_first("python", "auto", "ripgrep"), "Python's own search starts no program"),
    "undo.days": Strictness(_as_below, "how long the person's state folder keeps things is the person's", USER_SOURCES),
    "sandbox.tier": Strictness(_most, "a lower tier confines less", USER_SOURCES),
    "sandbox.least": Strictness(_most, "below it no command runs", USER_SOURCES),
    "sandbox.toolchains": Strictness(_common, "another folder is more that commands read", USER_SOURCES),
    "sandbox.environment": Strictness(_common, "another variable is more that commands learn", USER_SOURCES),
    "network.allow": Strictness(_in_both, "another host is more that commands can tell and be told", FILE_SOURCES),
    "mcp.wait": Strictness(_smaller("exec"), "who waits longer begins later"),
    "limits.exec": Strictness(_smaller("exec"), "who takes longer is in the way longer"),
    "limits.output": Strictness(_smaller("output"), "more output takes more memory"),
    "limits.memory": Strictness(_smaller("memory"), "who takes more memory leaves less to others"),
    "limits.processes": Strictness(_least, "more processes leave less to others"),
    "limits.file_size": Strictness(_smaller("file_size"), "a larger file fills the disk sooner"),
    "limits.preview": Strictness(_smaller("preview"), "a larger preview fills the disk sooner"),
    "limits.waiting": Strictness(_smaller("waiting"), "more previews that wait fill the disk sooner"),
    "limits.idle": Strictness(_smaller("idle"), "what nobody asks for any more takes memory from others"),
    "limits.sessions": Strictness(_least, "more that goes on leaves less to others"),
    "agent.calls": Strictness(_least, "more calls do more before anybody looks"),
    "agent.tokens": Strictness(_least_of_some, "tokens cost the person's money"),
    "agent.repeats": Strictness(_least, "who does the same again and again costs, and does nothing"),
    "agent.attempts": Strictness(_least, "each attempt may cost"),
    "agent.full": Strictness(_least, "a longer transcript costs more with every question"),
    "agent.window": Strictness(_least_of_some, "as above"),
}
"""For every dotted key, in the order of the model."""
