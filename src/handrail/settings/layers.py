"""The layers of settings, each checked on its own before they are merged."""

import os
from collections.abc import Mapping

import msgspec

from handrail.protocol.decision import MODES
from handrail.settings.check import DEFAULTS, flatten, refused
from handrail.settings.errors import SettingsError, shown, shown_path
from handrail.settings.location import user_file


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """Values by dotted key, all known and allowed, and where they come from."""

    source: str
    values: Mapping[str, object]
    notes: tuple[str, ...] = ()


def default_layer() -> Layer:
    """Every setting as it is when nobody says otherwise."""
    return Layer(source="default", values=DEFAULTS)


def user_layer(environ: Mapping[str, str]) -> Layer:
    """The user file; that it is missing is fine unless it was asked for by name."""
    path = user_file(environ)
    wanted = environ.get("HANDRAIL_CONFIG") or _is_there(path)
    return Layer(source=f"user file {shown_path(path)}", values=_file_values(path) if wanted else {})


def environment_layer(environ: Mapping[str, str], mode_below: object, source_below: str) -> Layer:
    """HANDRAIL_MODE, unless it is looser than what the layers below say."""
    source, mode = "environment HANDRAIL_MODE", environ.get("HANDRAIL_MODE")
    if not mode:
        return Layer(source=source, values={})
    if mode not in MODES:
        raise _unknown_mode(mode)
    if _is_looser(mode, mode_below):
        return Layer(source=source, values={}, notes=(_ignored(mode, f"{mode_below} ({source_below})"),))
    return Layer(source=source, values={"mode": mode})


def flag_layer(flags: Mapping[str, object]) -> Layer:
    """What was given on the command line; None is a flag that was not."""
    values = {key: value for key, value in flags.items() if value is not None}
    if wrong := refused(values):
        raise SettingsError(
            "The flags cannot be used", _described(wrong), "Nothing was run. Correct them, then try again."
        )
    return Layer(source="flag", values=values)


def _is_there(path: str) -> bool:
    try:
        os.lstat(path)  # a link that leads nowhere is a file that cannot be read, not the absence of one
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True  # opening it will say why it cannot be read
    return True


def _file_values(path: str) -> dict[str, object]:
    from handrail.settings.document import read_document, refuse  # noqa: PLC0415 - TOML only for a file

    document = read_document(path)
    values = flatten(document.tables)
    if wrong := refused(values):
        refuse(path, *_described(wrong, document.text))
    return values


def _is_looser(mode: str, other: object) -> bool:
    strictest_first: tuple[object, ...] = MODES
    return strictest_first.index(mode) > strictest_first.index(other)


def _ignored(mode: str, below: str) -> str:
    return (
        f"HANDRAIL_MODE={mode} is ignored: the mode is {below}, and the environment can make it stricter, not looser."
        " To loosen it, use the flag or the user file."
    )


def _unknown_mode(mode: str) -> SettingsError:
    return SettingsError(
        "The environment cannot be used",
        [f"HANDRAIL_MODE is {shown(mode)}; allowed: plan, ask, auto or full"],
        "Nothing was run. Set HANDRAIL_MODE to one of these, or unset it.",
    )


def _described(wrong: Mapping[str, object], text: str = "") -> list[str]:
    from handrail.settings.problem import describe  # noqa: PLC0415 - only for an error

    return describe(wrong, text)
