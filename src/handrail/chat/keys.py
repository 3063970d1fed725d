"""The keys of a session."""

from abc import abstractmethod
from collections.abc import Coroutine
from typing import Any

from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition, has_focus, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from handrail.chat.composer import Composer
from handrail.chat.console import Console
from handrail.chat.slash_commands import HELP, rewind, show_transcript
from handrail.chat.work import SessionWork

_LEAVES, _REWINDS = "ctrl+c again: leave the session", "esc again: go back to an earlier prompt"
"""Notes after the first key. While one is on the screen, the second key counts."""


class ComposerWork(SessionWork):
    """A session with a composer."""

    composer: Composer
    console: Console

    @abstractmethod
    def submit(self) -> None:
        """Sends the text of the composer. If it is empty, the queued messages go to the running turn."""

    @abstractmethod
    def stop(self) -> bool:
        """Stops the running turn. Queued messages return to the composer. Returns whether there was a turn."""

    @abstractmethod
    def take_back(self) -> bool:
        """Puts the last queued message back into the composer. Returns whether there was one."""

    @abstractmethod
    def start(self, work: Coroutine[Any, Any, object]) -> None:
        """Runs work in the background. Its errors are shown."""

    @abstractmethod
    def cycle_mode(self) -> None:
        """Chooses the next mode."""


def build_bindings(chat: ComposerWork) -> KeyBindings:
    """The bindings of the composer. Those of prompt_toolkit for editing text stay."""
    bindings = KeyBindings()
    _add_sending(bindings, chat)
    _add_stopping(bindings, chat)
    _add_moving(bindings, chat)
    _add_views(bindings, chat)
    return bindings


def _add_sending(bindings: KeyBindings, chat: ComposerWork) -> None:
    typing = ~is_searching

    @bindings.add("enter", filter=typing)
    def _(_: KeyPressEvent) -> None:
        chat.submit()

    @bindings.add("escape", "enter", filter=typing)
    @bindings.add("c-j", filter=typing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @bindings.add(Keys.BracketedPaste, filter=typing)
    def _(event: KeyPressEvent) -> None:
        chat.composer.paste(event.data)

    @bindings.add("c-v", filter=typing)
    def _(_: KeyPressEvent) -> None:
        chat.start(_paste_picture(chat))

    @bindings.add("s-tab")
    def _(_: KeyPressEvent) -> None:
        chat.cycle_mode()


def _add_stopping(bindings: KeyBindings, chat: ComposerWork) -> None:
    @bindings.add("escape", filter=~is_searching)
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.complete_state is not None:
            event.current_buffer.cancel_completion()
        else:
            _step_back(chat)

    @bindings.add("c-c", filter=~is_searching)
    def _(_: KeyPressEvent) -> None:
        if chat.composer.buffer.text:
            chat.composer.clear()
        elif chat.console.earlier_note == _LEAVES:
            chat.leave()
        else:
            chat.console.note = _LEAVES

    @bindings.add("c-d", filter=Condition(lambda: not chat.composer.buffer.text))
    def _(_: KeyPressEvent) -> None:
        chat.leave()

    @bindings.add("c-z")
    def _(_: KeyPressEvent) -> None:
        chat.start(chat.console.suspend())


def _step_back(chat: ComposerWork) -> None:
    """Stops the turn. Without a turn, a second key goes back to an earlier prompt."""
    if chat.stop():
        chat.console.note = "stopping …"
    elif chat.console.earlier_note == _REWINDS:
        chat.start(rewind(chat, ""))
    elif not chat.is_working:
        chat.console.note = _REWINDS


def _add_moving(bindings: KeyBindings, chat: ComposerWork) -> None:
    completes = Condition(lambda: chat.composer.buffer.complete_state is not None) & has_focus(chat.composer.buffer)
    is_empty = Condition(lambda: not chat.composer.buffer.text)

    @bindings.add("up", filter=completes)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_previous()

    @bindings.add("down", filter=completes)
    @bindings.add("tab", filter=completes)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_next()

    @bindings.add("tab", filter=~completes & ~is_searching)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.start_completion(select_first=True)

    @bindings.add("up", filter=is_empty & ~is_searching)
    def _(event: KeyPressEvent) -> None:
        if not chat.take_back():
            event.current_buffer.history_backward()


def _add_views(bindings: KeyBindings, chat: ComposerWork) -> None:
    is_empty = Condition(lambda: not chat.composer.buffer.text)

    @bindings.add("?", filter=is_empty & ~is_searching)
    def _(_: KeyPressEvent) -> None:
        chat.say(HELP)

    @bindings.add("c-o", filter=~is_searching)
    def _(_: KeyPressEvent) -> None:
        chat.start(show_transcript(chat))

    @bindings.add("c-g", filter=~is_searching)
    def _(event: KeyPressEvent) -> None:
        chat.start(_edit(chat, event))


async def _edit(chat: ComposerWork, event: KeyPressEvent) -> None:
    """Opens the text in $VISUAL or $EDITOR."""
    with chat.console.hold():
        await event.current_buffer.open_in_editor()


async def _paste_picture(chat: ComposerWork) -> None:
    from handrail.chat.pictures import read_clipboard_picture  # noqa: PLC0415  few prompts have pictures

    data = await read_clipboard_picture()
    if data is None:
        chat.console.note = "no picture in the clipboard (this needs wl-paste, xclip or pngpaste)"
        get_app().invalidate()
        return
    token = f"[Pasted picture {len(chat.pictures) + 1}]"
    chat.pictures[token] = data
    chat.composer.buffer.insert_text(token)
