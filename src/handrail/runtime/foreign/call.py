"""Calls a foreign tool."""

import re
import threading
from base64 import b64decode
from binascii import Error
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from handrail.process.output import clean_output
from handrail.protocol.decisions import ForeignFact
from handrail.protocol.errors import CODES, ToolError
from handrail.protocol.permissions import Permission, Preview
from handrail.protocol.results import Attachment
from handrail.protocol.text import clip_text
from handrail.protocol.tool_spec import Foreign, ForeignArguments, ForeignData, ToolSpec
from handrail.protocol.wire import encode, escape_surrogates, sanitize_json
from handrail.runtime.foreign.pins import PinStore, compute_fingerprint, to_description
from handrail.runtime.foreign.schema import (
    clean_schema,
    find_argument_problems,
    strip_invisible,
    strip_invisible_schema,
)
from handrail.runtime.foreign.source import ForeignTool, ToolSource, build_tool_name, split_tool_name
from handrail.tools.custom import ANY_EFFECT
from handrail.tools.read import find_image_type
from handrail.tools.tool import CommandContext, Output, Tool, Touches

# § [runtime.foreign.pictures] What kind of picture a server sent, by its bytes: a model's provider refuses one that
# § is not what it is said to be, and would refuse it again with every question after it.


def detect_image_type(content: str) -> str | None:
    """The media type of a picture in base64. None if it is none that models take."""
    try:
        return find_image_type(b64decode(content, validate=True))
    except (Error, ValueError):
        return None


# § [runtime.foreign.outcome] What another server's tool gave, as the runtime takes it: cleaned, bounded, and
# § nothing that it may not say.

MAX_TEXT_CHARACTERS = 4_000_000
"""Characters of a result that are kept."""
_MAX_DATA_BYTES = 1_000_000
_MAX_ATTACHED_CHARS = 10_000_000
"""Characters of all pictures together, as base64."""
_MAX_ATTACHMENTS = 20
_MAX_WARNINGS = 10
_MAX_SUMMARY_CHARS = 200
_MIME = re.compile(r"[a-z]+/[a-z0-9.+-]{1,80}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def sanitize_output(spec: ToolSpec, output: object, *, looks: bool) -> Output:
    """The output with all that is a stranger's made harmless; ToolError INTERNAL for what is none.

    `looks`: whether somebody vouches that the tool changes nothing. Of any other it is said that undo does not cover
    what it did.
    """
    if not isinstance(output, Output) or not isinstance(output.content, str) or not isinstance(output.summary, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        said = f"{spec.label} gave back something that is no result ({type(output).__name__})."
        raise ToolError("INTERNAL", f"{said} It is not your arguments; go on without it.")
    notes: list[str] = []
    content = _text(output.content, notes)
    summary = clip_text(" ".join(_clean(output.summary[:2_000]).split()), _MAX_SUMMARY_CHARS) or f"{spec.label} is done"
    return Output(
        summary=summary if looks else f"{summary}; not covered by undo",
        content=content,
        data=_data(output.data, notes),
        failure=_failure(output.failure),
        truncated=output.truncated is True or len(output.content) > MAX_TEXT_CHARACTERS,
        attachments=_attachments(output.attachments, notes),
        warnings=(*_warnings(output.warnings), *notes),
    )


def sanitize_error(error: ToolError) -> ToolError:
    """A failure in a server's words, made harmless."""
    code = error.code if error.code in CODES and error.code != "PERMISSION_REQUIRED" else "INTERNAL"
    return ToolError(code, _clean(str(error.message)[:20_000]), details=sanitize_json(error.details)[0])


def _failure(failure: object) -> ToolError | None:
    return sanitize_error(failure) if isinstance(failure, ToolError) else None


def _text(text: str, notes: list[str]) -> str:
    if len(text) > MAX_TEXT_CHARACTERS:
        notes.append(f"It gave {len(text):,} characters; those after the first {MAX_TEXT_CHARACTERS:,} are lost.")
    return _clean(text[:MAX_TEXT_CHARACTERS])


def _clean(text: str) -> str:
    """As with what commands print: no sequences for a terminal, no control characters."""
    if text.isprintable():
        return text
    return clean_output(escape_surrogates(text).encode())


def _data(data: Any, notes: list[str]) -> Any:
    found = sanitize_json(data)[0]
    if len(encode(found)) <= _MAX_DATA_BYTES:
        return found
    notes.append(f"Its structured content has over {_MAX_DATA_BYTES:,} bytes and is left out.")
    return None


def _attachments(given: object, notes: list[str]) -> tuple[Attachment, ...]:
    found: list[Attachment] = []
    room, left_out = _MAX_ATTACHED_CHARS, 0
    for one in given if isinstance(given, tuple | list) else ():  # pyright: ignore[reportUnknownVariableType]
        sound = _sound(one) if isinstance(one, Attachment) else None
        size = len(sound.content or "") if sound is not None else 0
        if sound is not None and size <= room and len(found) < _MAX_ATTACHMENTS:
            room -= size
            found.append(sound)
        else:
            left_out += 1
    if left_out:
        notes.append(f"{left_out} of what it attached is left out: too large, too many, or not what it says.")
    return tuple(found)


def _sound(one: Attachment) -> Attachment | None:
    """It itself, as the kind of picture that it is; None where it is not what it says."""
    if not _is_sound(one):
        return None
    if one.type != "image" or one.content is None:
        return one
    kind = detect_image_type(one.content)
    return replace(one, mime=kind) if kind is not None else None


def _is_sound(one: Attachment) -> bool:
    texts = isinstance(one.path, str) and isinstance(one.mime, str) and isinstance(one.content, str | None)  # pyright: ignore[reportUnnecessaryIsInstance]
    kind = one.type in {"file", "image"}
    if not texts or not kind or not _MIME.fullmatch(one.mime) or not one.path.isprintable() or len(one.path) > 1_000:
        return False
    return one.content is None or (
        len(one.content) <= _MAX_ATTACHED_CHARS and _BASE64.fullmatch(one.content) is not None
    )


def _warnings(given: object) -> tuple[str, ...]:
    texts = given if isinstance(given, tuple | list) else ()  # pyright: ignore[reportUnknownVariableType]
    return tuple(clip_text(_clean(str(text)[:2_000]), 500) for text in texts[:_MAX_WARNINGS])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


# § [runtime.foreign.calling] Calls another server's tool so that nothing it does, or does not do, holds up the
# § session.

_POLL_SECONDS = 0.05
_CANCEL_SECONDS = 5.0
"""Seconds that a source has to end what was cancelled, before it is left to itself."""


def call_foreign_tool(
    source: ToolSource, spec: ToolSpec, context: CommandContext, arguments: ForeignArguments, *, looks: bool
) -> Output:
    """What came of it; ToolError where that is nothing. The source works in a thread of its own, which is left behind
    where it does not end although it was cancelled."""
    work = _ForeignCallThread(source, spec.own_name, context, arguments.given)
    try:
        work.start()
        given = work.result(context)
    except BaseException:
        work.stop.set()
        raise
    return sanitize_output(spec, given, looks=looks)


class _ForeignCallThread:
    def __init__(self, source: ToolSource, name: str, context: CommandContext, given: dict[str, Any]) -> None:
        self.stop = threading.Event()
        self._done = threading.Event()
        self._given: object = None
        self._error: BaseException | None = None
        self._source, self._name, self._arguments = source, name, given
        self._context = replace(context, cancelled=lambda: self.stop.is_set() or context.cancelled())

    def start(self) -> None:
        try:
            threading.Thread(target=self._run, name="handrail-foreign", daemon=True).start()
        except RuntimeError as error:
            raise ToolError("UNAVAILABLE", f"No thread can be had for the call: {error}. Nothing was sent.") from None

    def result(self, context: CommandContext) -> object:
        """Waits for it. Nobody knows what a call did that was cancelled on its way."""
        patience = _CANCEL_SECONDS
        while not self._done.wait(_POLL_SECONDS):
            if context.cancelled():
                patience -= _POLL_SECONDS
            if patience <= 0:
                self.stop.set()
                told = f"The call was cancelled, and {self._source.server} did not end it."
                raise ToolError("CANCELLED", f"{told} What it did is not known; look before you repeat it.")
        if self._error is not None:
            raise self._failure(self._error)
        return self._given

    def _run(self) -> None:
        try:
            self._given = self._source.call(self._context, self._name, self._arguments)
        except BaseException as error:  # whatever it is: the session goes on
            self._error = error
        finally:
            self._done.set()

    def _failure(self, error: BaseException) -> ToolError:
        if isinstance(error, ToolError):
            return sanitize_error(error)
        what = clip_text(f"{type(error).__name__}: {error}", 300)
        told = f"The connection to {self._source.server} failed in a way that it should not ({what})."
        return ToolError("INTERNAL", f"{told} What the call did is not known; look before you repeat it.")


# § [runtime.foreign.tools] Makes a tool of ours of one that another server lists.

_MAX_DESCRIPTION_CHARS = 10_000
_MAX_SHOWN_CHARS = 20_000
"""Characters of arguments, or of a difference, that a request shows."""


def build_foreign_tool(source: ToolSource, listed: ForeignTool, known: PinStore, *, looks: bool) -> Tool:
    """The tool. `known`: as what it was met before; `looks`: whether somebody vouches that it changes nothing."""
    server = source.server
    spec = build_foreign_spec(server, listed, looks=looks, reach=source.reach)

    def fact() -> ForeignFact:
        changed = known.is_changed(server, to_description(listed))
        return ForeignFact(server=server, tool=listed.name, read_only=listed.read_only, changed=changed)

    def preview(_: CommandContext, arguments: ForeignArguments) -> Preview:
        difference = known.difference(server, to_description(listed))
        if difference is not None:
            return _cut("diff", difference)
        return _cut("input", msgspec.json.format(encode(arguments.given), indent=2).decode())

    def run(context: CommandContext, arguments: ForeignArguments) -> Output:
        return call_foreign_tool(source, spec, context, arguments, looks=looks)

    return Tool(spec, run, lambda _: Touches(foreign=fact()), preview, context=CommandContext)


def build_foreign_spec(
    server: str, listed: ForeignTool, *, looks: bool, reach: tuple[Permission, ...] = ()
) -> ToolSpec:
    """All that is said of a tool here. What its server says is cleaned, cut, and nowhere believed."""
    title = clip_text(" ".join(strip_invisible(listed.title).split()), 80)
    return ToolSpec(
        name=build_tool_name(server, listed.name),
        title=f"{title or clip_text(listed.name, 80)} ({server})",  # or it could pass for one of ours
        description=strip_invisible(listed.description)[:_MAX_DESCRIPTION_CHARS] or title or clip_text(listed.name, 80),
        arguments=ForeignArguments,
        data=ForeignData,
        side_effects=() if looks else ANY_EFFECT,
        category="mcp",
        server=server,
        # The stranger's words stay where models look for them: the prompt is the person's.
        intent=f"call {re.sub(r'[^A-Za-z0-9]+', ' ', listed.name)[:60].strip() or 'a tool'} of the server {server}",
        foreign=Foreign(
            name=listed.name,
            input_schema=clean_schema(strip_invisible_schema(listed.input_schema)),
            output_schema=strip_invisible_schema(listed.output_schema),
            fingerprint=compute_fingerprint(to_description(listed)),
            problems=lambda given: find_argument_problems(listed.input_schema, given),
            reach=reach,
        ),
    )


def _cut(kind: Literal["diff", "input"], text: str) -> Preview:
    shown, truncated = text[:_MAX_SHOWN_CHARS], len(text) > _MAX_SHOWN_CHARS
    return Preview(kind=kind, text=shown, truncated=truncated)


# § [runtime.foreign.unasked] Tools of other servers where none is asked: for who explains what policy says, or
# § judges calls of before.


def build_unlisted_spec(fact: ForeignFact) -> ToolSpec:
    """A spec that policy can judge by; it takes any arguments."""
    return build_foreign_spec(fact.server, ForeignTool(name=fact.tool), looks=False)


def parse_foreign_fact(name: str) -> ForeignFact | None:
    """What a name alone tells: which tool of which server. Its server may say more, and nothing of that is believed."""
    found = split_tool_name(name)
    return None if found is None else ForeignFact(server=found[0], tool=found[1])
