"""What the person can choose for a session in the editor: its mode, and its model where there are several.

Modes are told twice: as modes, and as an option, which clients that know options look at instead.
"""

from typing import Literal, TypedDict, cast

from acp.schema import (
    ConfigOptionUpdate,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)

from handrail.acp.errors import build_refusal
from handrail.acp.session import EditorSession
from handrail.protocol.decisions import Mode
from handrail.settings.rules import find_managed_mode, pick_stricter_mode

_TOLD: dict[Mode, str] = {
    "plan": "Looks, and changes nothing",
    "ask": "Asks before it writes or runs what is not proven harmless",
    "auto": "Works in the workspace unasked where undo covers it, and asks about the rest",
    "full": "Asks nothing",
}
Options = list[SessionConfigOptionSelect]


def _modes(session: EditorSession) -> SessionModeState:
    """The modes that may be chosen here, and the one in force."""
    modes = [SessionMode(id=mode, name=mode.capitalize(), description=told) for mode, told in _allowed(session)]
    return SessionModeState(current_mode_id=session.rail.mode, available_modes=modes)


def _options(session: EditorSession) -> Options:
    """The same as options, with the model."""
    modes = [
        SessionConfigSelectOption(value=mode, name=mode.capitalize(), description=told)
        for mode, told in _allowed(session)
    ]
    options = [_select("mode", "Mode", session.rail.mode, modes)]
    if session.work.model is not None:
        models = [SessionConfigSelectOption(value=name, name=name) for name in session.work.models]
        options.append(_select("model", "Model", session.work.model, models))
    return options


class SessionChoices(TypedDict):
    """What an editor is told of both where a session is opened."""

    modes: SessionModeState
    config_options: list[SessionConfigOptionSelect | SessionConfigOptionBoolean]


def build_choices(session: EditorSession) -> SessionChoices:
    """What may be chosen, and what is."""
    return {"modes": _modes(session), "config_options": [*_options(session)]}


async def choose(session: EditorSession, option: str, value: object) -> Options:
    """Sets an option; all of them as they are then. Another model is asked from the next prompt on."""
    if option == "mode" and isinstance(value, str):
        await session.rail.set_mode(cast("Mode", value))  # which refuses what is none
    elif option == "model" and isinstance(value, str) and value in session.work.models:
        session.work.model = value
    else:
        raise build_refusal(
            f"There is no option {option[:80]!r} with a value {str(value)[:80]!r}. Nothing was changed."
        )
    return _options(session)


async def tell_options(session: EditorSession) -> None:
    """Tells the editor of a choice that was not made by an option."""
    update = ConfigOptionUpdate(session_update="config_option_update", config_options=[*_options(session)])
    await session.send(update)


def _allowed(session: EditorSession) -> list[tuple[Mode, str]]:
    loosest = find_managed_mode(session.loaded)
    return [(mode, told) for mode, told in _TOLD.items() if pick_stricter_mode(mode, loosest) == mode]


def _select(
    name: Literal["mode", "model"], title: str, value: str, options: list[SessionConfigSelectOption]
) -> SessionConfigOptionSelect:
    return SessionConfigOptionSelect(
        id=name, name=title, category=name, type="select", current_value=value, options=options
    )
