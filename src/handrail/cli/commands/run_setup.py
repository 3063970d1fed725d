"""Prepares a run."""

import os
import stat
import sys
from argparse import Namespace
from collections.abc import AsyncIterator

from msgspec.structs import replace

from handrail.agent.prompt import fence_text
from handrail.api import Handrail
from handrail.cli.context import MAX_SHOWN_IDS, match_sessions, open_state_folder
from handrail.cli.exits import FAILED, CommandFailed
from handrail.cli.output import print_note
from handrail.models.listening import open_stream
from handrail.models.model import Model, ModelError, ModelRequest, StreamPiece
from handrail.settings import LoadedSettings, Settings, resolve_user_file
from handrail.store.state_dir import make_id

# § [cli.running.choosing] Which session a run belongs to: a new one, one by its id, or the last one of the
# § workspace.


def choose_session(options: Namespace, workspace: str) -> str:
    """The id of the session that the turn happens in."""
    if options.session is not None and not options.session:
        raise CommandFailed("--session is empty; name one, or leave it out for a new one. Nothing was run.")
    if options.resume is not None:
        return resolve_session(options.resume, workspace)
    if options.last:
        return _last_session(workspace)
    return options.session or make_id("s")


def resolve_session(spelled: str, workspace: str) -> str:
    """The session that somebody means by its id, or by the beginning of it."""
    found = match_sessions(spelled, os.path.realpath(workspace))
    if len(found) == 1:
        return found[0]
    if found:
        told = f"{spelled[:80]!r} may be {', '.join(found[:MAX_SHOWN_IDS])}{' …' if len(found) > MAX_SHOWN_IDS else ''}"
        raise CommandFailed(f"{told}. Nothing was run. Write more of the id.")
    told = f"this workspace has no session {spelled[:80]!r}. Nothing was run."
    raise CommandFailed(f"{told} handrail log --sessions lists those there are.", FAILED)


def _last_session(workspace: str) -> str:
    for talk in open_state_folder().list_conversations(os.path.realpath(workspace)):
        return talk.id
    told = "no model was talked to in this workspace yet, so there is nothing to go on with."
    raise CommandFailed(f"{told} Begin: handrail run PROMPT", FAILED)


def find_last_model(session: str, workspace: str) -> str | None:
    """Whom a session talked to last."""
    return open_state_folder().find_last_model(os.path.realpath(workspace), session)


def find_last_event(session: str, workspace: str) -> int:
    """The number of the last event that a session has; 0 for a new one."""
    return open_state_folder().count_events(os.path.realpath(workspace), session)


# § [cli.running.companions] The tools that a run offers besides the eight: what a model says to its person, and the
# § skills there are.

_COMPANIONS = ("display", "question", "todo")
_OF_SKILLS = ("skill_list", "skill_control")


def enable_companion_tools(loaded: LoadedSettings, workspace: str | None = None) -> LoadedSettings:
    """The settings with the companions on, and those of skills where one can be used. What the person disabled
    stays off, and so does what the managed file does not list, where it lists any."""
    tools = loaded.settings.tools
    skills = _OF_SKILLS if workspace is not None and _has_skills(workspace, loaded.settings) else ()
    wanted = [name for name in (*_COMPANIONS, *skills) if name not in tools.enable]
    listed = loaded.managed.get("tools.enable")
    more = [name for name in wanted if not isinstance(listed, list | tuple) or name in listed]
    enable = (*tools.enable, *more)
    return replace(loaded, settings=replace(loaded.settings, tools=replace(tools, enable=enable)))


def _has_skills(workspace: str, settings: Settings) -> bool:
    from handrail.runtime.skills import has_usable_skill  # noqa: PLC0415  the demo has none

    return settings.skills.enabled and has_usable_skill(workspace, settings, os.environ)


# § [cli.running.forking] A session that begins where another one is.


def fork(source: str, session: str, workspace: str, loaded: LoadedSettings) -> str:
    """Makes the new session; its id."""
    with Handrail(workspace, session=source, settings=loaded, on_permission=lambda _: None) as rail:
        return rail.fork_session(session)


# § [cli.running.prompt] What the person says: on the command line, on stdin, or both.

_MAX_PROMPT_BYTES = 1_000_000


def read_prompt(options: Namespace) -> str | None:
    """The prompt; None where none was given. `-` is all of stdin; what is piped in beside a prompt is its material."""
    given: str | None = options.prompt
    if given == "-":
        given = _stdin()
    elif given is not None and given.strip() and _is_piped():
        material = _stdin().strip("\n")
        given = f"{given}\n\n{fence_text('stdin', material)}" if material else given
    if given is not None and not given.strip():
        raise CommandFailed(
            "the prompt is empty. Nothing was run. Say what is to be done: handrail run 'fix the failing test'"
        )
    return given


def _is_piped() -> bool:
    """Whether somebody put something there for us: a pipe or a file, not a terminal, a device or a socket."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return sys.stdin is not None and (stat.S_ISFIFO(mode) or stat.S_ISREG(mode))


def _stdin() -> str:
    if sys.stdin is None:
        raise CommandFailed("the prompt cannot be read: stdin is closed. Nothing was run.")
    if sys.stdin.isatty():
        print_note("waiting for the prompt; end with Ctrl-D")
    data = sys.stdin.buffer.read(_MAX_PROMPT_BYTES + 1)
    if len(data) > _MAX_PROMPT_BYTES:
        told = "stdin has more than 1 MB, too much for a model to read at once. Nothing was run."
        raise CommandFailed(f"{told} Put it into a file of the workspace, and name that.")
    return data.decode(errors="replace")


# § [cli.running.model] Which model a run talks to, and what to say where there is none.

SCRIPTED = "scripted:"
"""A model that plays the file named behind it: no key, nothing is sent to anybody."""


def resolve_model(name: str, window: int | None = None) -> Model:
    """The model of that name. Stop where the name can mean none; what else is wrong is found when it is asked, so that
    by then there is a session that keeps the prompt. `window`: how many tokens it takes, where a person said so."""
    if name.startswith(SCRIPTED):
        return _scripted(name.removeprefix(SCRIPTED))
    from handrail.models.finding import split_name  # noqa: PLC0415  help needs no provider

    try:
        split_name(name)
    except ModelError as error:
        raise CommandFailed(f"{error.message} Nothing was run.") from None
    return _Later(name, window)


def warm_up(name: str) -> None:
    """Begins to import what the model takes, while the session is opened."""
    if not name.startswith(SCRIPTED):
        from handrail.models.loading import warm_up as begin  # noqa: PLC0415  a script takes nothing

        begin(name)


def build_no_model_error() -> CommandFailed:
    """How to choose one, by the keys that are set."""
    from handrail.models.providers import PROVIDERS  # noqa: PLC0415  mostly somebody chose one

    keys = [name for one in PROVIDERS.values() for name in one.keys if os.environ.get(name, "").strip()]
    by_key = [one.name for one in PROVIDERS.values() if one.key(os.environ) is not None and one.keys]
    example = f"{by_key[0] if by_key else 'anthropic'}:MODEL"
    are = "are" if len(keys) > 1 else "is"
    found = f"{', '.join(keys)} {are} set" if keys else "no provider's key is set; ollama:MODEL needs none"
    where = f'or write model = "{example}" into {resolve_user_file(os.environ)}'
    return CommandFailed(f"no model is chosen ({found}). Nothing was run. Use --model {example}, {where}.")


class _Later:
    """A model that is looked for when it is first asked."""

    def __init__(self, name: str, window: int | None) -> None:
        self.name = name
        self._window = window
        self._found: Model | None = None

    @property
    def window(self) -> int:
        """As the model has it."""
        return self._find().window

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPiece]:
        """Its answer."""
        async with open_stream(self._find(), request) as pieces:
            async for piece in pieces:
                yield piece

    async def close(self) -> None:
        """Lets go of its connections."""
        if self._found is not None:
            await self._found.close()

    def _find(self) -> Model:
        if self._found is None:
            from handrail.models.finding import find_model  # noqa: PLC0415  as above

            self._found = find_model(self.name, window=self._window)
            self.name = self._found.name
        return self._found


def _scripted(path: str) -> Model:
    import msgspec  # noqa: PLC0415  only for a script

    from handrail.cli.files import read_input_file  # noqa: PLC0415
    from handrail.models.scripted import ScriptedModel  # noqa: PLC0415
    from handrail.models.scripts import parse_script  # noqa: PLC0415

    try:
        return ScriptedModel(parse_script(read_input_file(path)), name=os.path.abspath(path))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        form = 'A script is [{"text": "I look.", "calls": [["ls", {"path": "."}]]}, {"text": "Done."}].'
        raise CommandFailed(f"{path} is no script: {error}. Nothing was run. {form}") from None
