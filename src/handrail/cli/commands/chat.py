"""`handrail chat`: an interactive session with a model."""

import os
import sys
from contextlib import ExitStack
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING

from handrail.cli.exits import INFRASTRUCTURE, INTERRUPTED, OK, USAGE, CommandFailed
from handrail.cli.parser import COMMANDS as ALL_COMMANDS
from handrail.cli.parser import Command, add_plain_option, add_session_options

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from handrail.chat.session import SessionSetup
    from handrail.models.base import Model


def run(options: SimpleNamespace) -> int:
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if not all(stream is not None and stream.isatty() for stream in streams):
        problem = "a session needs a terminal on stdin, stdout and stderr. Nothing was run."
        raise CommandFailed(problem, USAGE, then="handrail run 'PROMPT'")
    from handrail.terminal.glyphs import build_glyphs  # noqa: PLC0415  loads the room of terminals

    glyphs = build_glyphs(options)
    host = CommandLineHost(options)
    if glyphs.plain:
        import asyncio  # noqa: PLC0415  after the first rows are on the screen

        from handrail.chat.plain import PlainChat  # noqa: PLC0415  few terminals are plain

        return asyncio.run(PlainChat(host, glyphs, verbose=bool(options.verbose)).run())
    from handrail.chat.first_rows import show_first_rows  # noqa: PLC0415  loads the room of sessions

    with ExitStack() as first_rows:
        first_rows.enter_context(show_first_rows(glyphs.paint))
        import asyncio  # noqa: PLC0415  after the first rows are on the screen

        from handrail.chat.chat import Chat  # noqa: PLC0415  the only importer of prompt_toolkit

        chat = Chat(host, glyphs, verbose=bool(options.verbose))
        return asyncio.run(chat.run(first_rows.close))


class CommandLineHost:
    """The host of a session: the options of the command decide."""

    def __init__(self, options: SimpleNamespace) -> None:
        self.options = options
        self._model: Model | None = None

    @cached_property
    def workspace(self) -> str:
        from handrail.cli.context import resolve_workspace  # noqa: PLC0415  after the first prompt is on the screen

        return os.path.abspath(resolve_workspace(self.options))

    def prepare(self, session: str | None) -> "SessionSetup":
        from handrail.chat.session import SessionSetup  # noqa: PLC0415  after the first prompt is on the screen
        from handrail.cli.commands.run_setup import build_turn_limits, prepare_run  # noqa: PLC0415
        from handrail.cli.context import find_server_sources  # noqa: PLC0415

        options = self.options
        if session is not None:
            options = SimpleNamespace(**{**vars(options), "resume": session, "last": False, "fork": None})
        quiet = SimpleNamespace(**{**vars(options), "quiet": True})
        config = prepare_run(quiet, self.workspace, self._model, needs_prompt=False)
        self._model = config.model
        return SessionSetup(
            workspace=config.workspace,
            session=config.session,
            model=config.model,
            loaded=config.loaded,
            limits=build_turn_limits(config.loaded),
            sources=find_server_sources(quiet, config.loaded, config.workspace),
            notes=config.loaded.notes if not self.options.quiet else (),
            resumes=config.after > 0,
        )

    def open_model(self, name: str) -> "Model":
        from handrail.cli.commands.run_setup import resolve_model, warm_up  # noqa: PLC0415  loaded with the session

        self._model = resolve_model(name)
        warm_up(name)
        return self._model

    def list_sessions(self) -> list[tuple[str, str]]:
        from handrail.cli.context import open_state_folder  # noqa: PLC0415  loaded with the session

        found = open_state_folder().list_conversations(os.path.realpath(self.workspace))
        return [(one.id, one.prompt) for one in found]

    def build_command(self, *words: str) -> list[str]:
        program = [sys.executable, "-P", "-m", "handrail"]
        takes_folder = words[0] != "doctor" and words[:2] != ("policy", "modes")
        place = ["--workspace", self.workspace] if takes_folder else []
        count = 2 if len(words) > 1 and f"{words[0]} {words[1]}" in ALL_COMMANDS else 1
        return [*program, *words[:count], *place, *words[count:]]

    def explain(self, error: Exception) -> tuple[str, str] | None:
        from handrail.cli.errors import describe_error  # noqa: PLC0415  few sessions have errors
        from handrail.protocol.errors import HandrailError, ToolError  # noqa: PLC0415

        return describe_error(error)[:2] if isinstance(error, CommandFailed | HandrailError | ToolError) else None


def _add_arguments(parser: "ArgumentParser") -> None:
    add_session_options(parser)
    add_plain_option(parser)
    parser.set_defaults(json=False, prompt=None, park=False, unattended=False, max_calls=None, max_tokens=None)


COMMANDS = {
    "chat": Command(
        run,
        _add_arguments,
        ("handrail chat --model anthropic:claude-sonnet-4-5", "handrail chat -c"),
        {
            OK: "you left the session; it is stored",
            INFRASTRUCTURE: "the sandbox or the state folder is unusable; the session is stored",
            INTERRUPTED: "interrupted; the session is stored",
        },
    ),
}
