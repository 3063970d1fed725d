"""Which model a run talks to, and what to say where there is none."""

import os
from collections.abc import AsyncIterator

from handrail.cli.exits import CommandFailed
from handrail.models.base import Model, ModelError, ModelRequest, StreamPiece, open_stream
from handrail.settings import resolve_user_file

SCRIPTED = "scripted:"
"""A model that plays the file named behind it: no key, nothing is sent to anybody."""


def resolve_model(name: str, window: int | None = None) -> Model:
    """The model of that name. Stop where the name can mean none; what else is wrong is found when it is asked, so that
    by then there is a session that keeps the prompt. `window`: how many tokens it takes, where a person said so."""
    if name.startswith(SCRIPTED):
        return _scripted(name.removeprefix(SCRIPTED))
    from handrail.models.registry import split_name  # noqa: PLC0415  help needs no provider

    try:
        split_name(name)
    except ModelError as error:
        raise CommandFailed(f"{error.message} Nothing was run.") from None
    return _Later(name, window)


def warm_up(name: str) -> None:
    """Begins to import what the model takes, while the session is opened."""
    if not name.startswith(SCRIPTED):
        from handrail.models.registry import warm_up as begin  # noqa: PLC0415  a script takes nothing

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
            from handrail.models.registry import find_model  # noqa: PLC0415  as above

            self._found = find_model(self.name, window=self._window)
            self.name = self._found.name
        return self._found


def _scripted(path: str) -> Model:
    import msgspec  # noqa: PLC0415  only for a script

    from handrail.cli.files import read_input_file  # noqa: PLC0415
    from handrail.models.scripted import ScriptedModel, parse_script  # noqa: PLC0415

    try:
        return ScriptedModel(parse_script(read_input_file(path)), name=os.path.abspath(path))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        form = 'A script is [{"text": "I look.", "calls": [["ls", {"path": "."}]]}, {"text": "Done."}].'
        raise CommandFailed(f"{path} is no script: {error}. Nothing was run. {form}") from None
