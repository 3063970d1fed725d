"""The preparation of a run: prompt, session, model, limits."""

import os
import stat
import sys
from collections.abc import AsyncIterator
from types import SimpleNamespace

import msgspec
from msgspec.structs import asdict, replace

from handrail.agent.prompt import fence_text
from handrail.agent.turn import TurnLimits
from handrail.api import Handrail
from handrail.cli.context import load_settings, open_state_folder, resolve_workspace_session
from handrail.cli.exits import FAILED, INFRASTRUCTURE, CommandFailed
from handrail.cli.files import read_input_file
from handrail.cli.permission import can_ask
from handrail.cli.stdin import read_prompt
from handrail.models import registry
from handrail.models.base import Model, ModelError, ModelRequest, StreamPiece, open_stream
from handrail.models.providers import PROVIDERS
from handrail.protocol.errors import UsageError
from handrail.settings import LoadedSettings, resolve_user_file
from handrail.state import make_session_id

_COMPANIONS = ("display", "question", "todo")
_SKILL_TOOLS = ("skill_list", "skill_control")
_EXAMPLE = "handrail run 'fix the failing test'"
_CHAT = "handrail chat"
_SCRIPTED = "scripted:"
"""Starts the name of a model that plays the file named behind it. It needs no key and sends nothing."""


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a run needs to know."""

    prompt: str | None
    """None: continue the last turn."""
    workspace: str
    session: str
    model: Model
    loaded: LoadedSettings
    unattended: bool
    asks: bool
    """Whether handrail asks the person at this terminal."""
    after: int
    """The last event of the session before this run. Events of its recovery belong to this turn."""


def prepare_run(
    options: SimpleNamespace, workspace: str, model: Model | None = None, *, needs_prompt: bool = True
) -> RunConfig:
    """Finds prompt, session and model. `model`: instead of the one in the options. A session needs no prompt: it opens
    without a key too, so that the error stands below a prompt that it keeps."""
    prompt = _read_prompt(options) if needs_prompt else None
    if needs_prompt and prompt is None and not _names_session(options):
        raise CommandFailed("the prompt is missing. Nothing was run.", then=_EXAMPLE)
    flags = {"model": options.model, "agent.calls": options.max_calls, "agent.tokens": options.max_tokens}
    flags["dialect"] = getattr(options, "dialect", None)  # `chat` speaks none
    loaded = enable_companion_tools(load_settings(options, options.mode, workspace, flags=flags), workspace)
    session = _choose_session(options, workspace, _EXAMPLE if needs_prompt else _CHAT)
    if model is None:
        model = _choose_model(options, workspace, session, loaded, is_run=needs_prompt)
    if options.fork is not None:
        source = _resolve_session(options.fork, workspace)
        with Handrail(workspace, session=source, settings=loaded, on_permission="park") as rail:
            session = rail.fork_session(session)
    asks = not options.park and not options.unattended and can_ask(options)
    return RunConfig(
        prompt=prompt,
        workspace=workspace,
        session=session,
        model=model,
        loaded=loaded,
        unattended=not asks and not options.park,
        asks=asks,
        after=open_state_folder().count_events(os.path.realpath(workspace), session),
    )


def enable_companion_tools(loaded: LoadedSettings, workspace: str | None = None) -> LoadedSettings:
    """Enables the companion tools, and those of skills if the workspace has any.

    Tools that the person disabled stay off. If the managed file lists tools, others stay off too.
    """
    tools, skills = loaded.settings.tools, ()
    if workspace is not None and loaded.settings.skills.enabled:
        from handrail.inspection import load_skills  # noqa: PLC0415  an engine room

        found = load_skills(workspace, loaded, os.environ).skills
        skills = _SKILL_TOOLS if any(not skill.problem for skill in found) else ()
    wanted = [name for name in (*_COMPANIONS, *skills) if name not in tools.enable]
    listed = loaded.managed.get("tools.enable")
    more = [name for name in wanted if not isinstance(listed, list | tuple) or name in listed]
    enable = (*tools.enable, *more)
    return replace(loaded, settings=replace(loaded.settings, tools=replace(tools, enable=enable)))


def build_turn_limits(loaded: LoadedSettings) -> TurnLimits:
    limits = asdict(loaded.settings.agent)
    return TurnLimits(**{name: value for name, value in limits.items() if name in TurnLimits.__struct_fields__})


# Prompt


def _read_prompt(options: SimpleNamespace) -> str | None:
    """The prompt, if there is one. `-` reads it from stdin. Piped input is added to a prompt."""
    given: str | None = options.prompt
    if given == "-":
        given = read_prompt()
    elif given is not None and given.strip() and _is_piped():
        material = read_prompt().strip("\n")
        given = f"{given}\n\n{fence_text('stdin', material)}" if material else given
    if given is not None and not given.strip():
        raise CommandFailed("the prompt is empty. Nothing was run.", then=_EXAMPLE)
    return given


def _is_piped() -> bool:
    """Whether stdin is a pipe or a file, and no terminal, device or socket."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return sys.stdin is not None and (stat.S_ISFIFO(mode) or stat.S_ISREG(mode))


# Session


def _names_session(options: SimpleNamespace) -> bool:
    return bool(options.last or options.resume or options.fork or options.session)


def _choose_session(options: SimpleNamespace, workspace: str, command: str) -> str:
    if options.session is not None and not options.session:
        raise CommandFailed("--session is empty. Nothing was run.")
    if options.resume is not None:
        return _resolve_session(options.resume, workspace)
    if not options.last:
        return options.session or make_session_id()
    last = next(open_state_folder().list_conversations(os.path.realpath(workspace)), None)
    if last is not None:
        return last.id
    problem = "this workspace has no session to continue. Nothing was run."
    raise CommandFailed(problem, FAILED, then=command)


def _resolve_session(spelled: str, workspace: str) -> str:
    """The id of a session, of which the beginning is enough."""
    return os.path.basename(resolve_workspace_session(os.path.realpath(workspace), spelled))


def find_last_model(session: str, workspace: str) -> str | None:
    """The last model of a session."""
    return open_state_folder().find_last_model(os.path.realpath(workspace), session)


# Model


def _choose_model(
    options: SimpleNamespace, workspace: str, session: str, loaded: LoadedSettings, *, is_run: bool
) -> Model:
    name = loaded.settings.model
    if name is None and _names_session(options):
        name = find_last_model(_resolve_session(options.fork, workspace) if options.fork else session, workspace)
    if name is None:
        raise build_no_model_error(_EXAMPLE if is_run else _CHAT)
    model = resolve_model(name, loaded.settings.agent.window)
    if is_run and not name.startswith(_SCRIPTED):
        _check_reachable(name)
    warm_up(name)
    return model


def _check_reachable(name: str) -> None:
    """CommandFailed if the key or the package of a model is missing, before a session begins."""
    try:
        registry.find_model(name)
    except ModelError as error:
        keys = registry.split_name(name)[0].keys
        is_set = not keys or any(os.environ.get(key, "").strip() for key in keys)
        then = "handrail doctor" if is_set else f"export {keys[0]}=KEY"
        raise CommandFailed(f"{error.message} Nothing was run.", INFRASTRUCTURE, then=then) from None


def resolve_model(name: str, window: int | None = None) -> Model:
    """The model of a name. `window`: the tokens it takes, if a person set it.

    Only a name that can mean no model fails here. Other problems appear when the model is asked: then the session has
    the prompt already.
    """
    if name.startswith(_SCRIPTED):
        return _load_script(name.removeprefix(_SCRIPTED))
    try:
        registry.split_name(name)
    except ModelError as error:
        raise CommandFailed(f"{error.message} Nothing was run.") from None
    return _LazyModel(name, window)


def open_named_model(name: str | None, loaded: LoadedSettings) -> Model:
    """The same for a program that a person does not see. UsageError instead of CommandFailed."""
    try:
        if name is None:
            raise build_no_model_error()
        model = resolve_model(name, loaded.settings.agent.window)
    except CommandFailed as stop:
        raise UsageError(f"{stop}") from None
    warm_up(name)
    return model


def warm_up(name: str) -> None:
    """Starts to import the code of a model, while the session opens."""
    if not name.startswith(_SCRIPTED):
        registry.warm_up(name)


def build_no_model_error(command: str = _EXAMPLE) -> CommandFailed:
    """Tells how to choose a model, by the keys that are set."""
    keys = [name for one in PROVIDERS.values() for name in one.keys if os.environ.get(name, "").strip()]
    by_key = [one.name for one in PROVIDERS.values() if one.key(os.environ) is not None and one.keys]
    example = f"{by_key[0] if by_key else 'anthropic'}:MODEL"
    are = "are" if len(keys) > 1 else "is"
    found = f"{', '.join(keys)} {are} set" if keys else "no provider's key is set; ollama:MODEL needs none"
    where = f'To set a default, write model = "{example}" into {resolve_user_file(os.environ)}.'
    problem = f"no model is chosen ({found}). Nothing was run. {where}"
    first = "" if by_key else "export ANTHROPIC_API_KEY=KEY && "
    return CommandFailed(problem, then=f"{first}{command} --model {example}")


class _LazyModel:
    """A model that is loaded when it is first asked."""

    def __init__(self, name: str, window: int | None) -> None:
        self.name = name
        self._window = window
        self._loaded: Model | None = None

    @property
    def window(self) -> int:
        return self._load().window

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPiece]:
        async with open_stream(self._load(), request) as pieces:
            async for piece in pieces:
                yield piece

    async def close(self) -> None:
        if self._loaded is not None:
            await self._loaded.close()

    def _load(self) -> Model:
        if self._loaded is None:
            self._loaded = registry.find_model(self.name, window=self._window)
            self.name = self._loaded.name
        return self._loaded


def _load_script(path: str) -> Model:
    from handrail.models.scripted import ScriptedModel, parse_script  # noqa: PLC0415  most runs have a real model

    try:
        return ScriptedModel(parse_script(read_input_file(path)), name=os.path.abspath(path))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        form = 'A script is [{"text": "I look.", "calls": [["ls", {"path": "."}]]}, {"text": "Done."}].'
        raise CommandFailed(f"{path} is not a script: {error}. Nothing was run. {form}") from None
