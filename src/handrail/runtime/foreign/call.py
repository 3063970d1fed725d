"""Calls of foreign tools: their specs, their threads, their sanitised results."""

import re
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from handrail.process.output import clean_output
from handrail.protocol.changes import Preview
from handrail.protocol.decisions import ForeignFact
from handrail.protocol.errors import CODES, ToolError
from handrail.protocol.permissions import Permission
from handrail.protocol.results import Attachment, detect_image_type
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
from handrail.runtime.foreign.source import ForeignTool, ToolSource, build_tool_name
from handrail.runtime.tool_thread import AbandonedError, run_in_thread
from handrail.tools.custom import ANY_EFFECT
from handrail.tools.tool import CommandContext, Output, Tool, Touches

MAX_TEXT_CHARACTERS = 4_000_000
"""Characters of a result that are kept."""
_MAX_DESCRIPTION_CHARS = 10_000
_MAX_PREVIEW_CHARS = 20_000
_MAX_DATA_BYTES = 1_000_000
_MAX_ATTACHED_CHARS = 10_000_000
_MAX_ATTACHMENTS = 20
_MAX_WARNINGS = 10
_MAX_SUMMARY_CHARS = 200
_CANCEL_SECONDS = 5.0
_MIME = re.compile(r"[a-z]+/[a-z0-9.+-]{1,80}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def build_foreign_tool(source: ToolSource, listed: ForeignTool, pins: PinStore, *, read_only: bool) -> Tool:
    """A tool of a server. `read_only`: a person vouches that it changes nothing."""
    server, description = source.server, to_description(listed)
    spec = build_foreign_spec(server, listed, read_only=read_only, reach=source.reach)

    def touches(_: ForeignArguments) -> Touches:
        changed = pins.is_changed(server, description)
        fact = ForeignFact(server=server, tool=listed.name, read_only=listed.read_only, changed=changed)
        return Touches(foreign=fact)

    def preview(_: CommandContext, arguments: ForeignArguments) -> Preview:
        difference = pins.difference(server, description)
        if difference is not None:
            return _build_preview("diff", difference)
        return _build_preview("input", msgspec.json.format(encode(arguments.given), indent=2).decode())

    def run(context: CommandContext, arguments: ForeignArguments) -> Output:
        output = _call_in_thread(source, listed.name, context, arguments.given)
        return _sanitize_output(spec, output, read_only=read_only)

    return Tool(spec, run, touches, preview, context=CommandContext)


def build_foreign_spec(
    server: str, listed: ForeignTool, *, read_only: bool, reach: tuple[Permission, ...] = ()
) -> ToolSpec:
    """The spec of a server's tool. The texts of the server are cleaned and cut."""
    title = clip_text(" ".join(strip_invisible(listed.title).split()), 80)
    return ToolSpec(
        name=build_tool_name(server, listed.name),
        title=f"{title or clip_text(listed.name, 80)} ({server})",  # or it could pass for a built-in tool
        description=strip_invisible(listed.description)[:_MAX_DESCRIPTION_CHARS] or title or clip_text(listed.name, 80),
        arguments=ForeignArguments,
        data=ForeignData,
        side_effects=() if read_only else ANY_EFFECT,
        category="mcp",
        server=server,
        # The system prompt quotes intents, so a server's text must not be in it.
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


def _build_preview(kind: Literal["diff", "input"], text: str) -> Preview:
    return Preview(kind=kind, text=text[:_MAX_PREVIEW_CHARS], truncated=len(text) > _MAX_PREVIEW_CHARS)


def _call_in_thread(source: ToolSource, name: str, context: CommandContext, arguments: dict[str, Any]) -> object:
    """The output of a source. It works in a thread, which is abandoned if it does not end after a cancellation."""

    def work(cancelled: Callable[[], bool]) -> object:
        return source.call(replace(context, cancelled=cancelled), name, arguments)

    server = source.server
    try:
        outcome = run_in_thread(work, context.cancelled, grace=_CANCEL_SECONDS)
    except AbandonedError:
        message = f"The call was cancelled, but {server} did not stop it. It may still run."
        raise ToolError("CANCELLED", f"{message} Its effects are unknown. Check before you repeat it.") from None
    error = outcome.exception()
    if error is None:
        return outcome.result()
    if isinstance(error, ToolError):
        raise _sanitize_error(error)
    cause = clip_text(f"{type(error).__name__}: {error}", 300)
    message = f"The connection to {server} failed unexpectedly ({cause})."
    raise ToolError("INTERNAL", f"{message} Its effects are unknown. Check before you repeat it.")


def _sanitize_output(spec: ToolSpec, output: object, *, read_only: bool) -> Output:
    """The output without anything harmful. ToolError INTERNAL if it is no output."""
    if not isinstance(output, Output) or not isinstance(output.content, str) or not isinstance(output.summary, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"{spec.label} returned something that is not a result ({type(output).__name__})."
        raise ToolError("INTERNAL", f"{message} Your arguments are not the cause. Continue without this call.")
    notes: list[str] = []
    if len(output.content) > MAX_TEXT_CHARACTERS:
        size, most = f"{len(output.content):,}", f"{MAX_TEXT_CHARACTERS:,}"
        notes.append(f"It gave {size} characters; those after the first {most} are lost.")
    summary = clip_text(" ".join(_clean(output.summary[:2_000]).split()), _MAX_SUMMARY_CHARS) or f"{spec.label} is done"
    return Output(
        summary=summary if read_only else f"{summary}; not covered by undo",
        content=_clean(output.content[:MAX_TEXT_CHARACTERS]),
        data=_sanitize_data(output.data, notes),
        failure=_sanitize_error(output.failure) if isinstance(output.failure, ToolError) else None,
        truncated=output.truncated is True or len(output.content) > MAX_TEXT_CHARACTERS,
        attachments=_select_attachments(output.attachments, notes),
        warnings=(*_clean_warnings(output.warnings), *notes),
    )


def _sanitize_error(error: ToolError) -> ToolError:
    code = error.code if error.code in CODES and error.code != "PERMISSION_REQUIRED" else "INTERNAL"
    return ToolError(code, _clean(str(error.message)[:20_000]), details=sanitize_json(error.details)[0])


def _clean(text: str) -> str:
    """Text without escape sequences and control characters, as for the output of commands."""
    return text if text.isprintable() else clean_output(escape_surrogates(text).encode())


def _sanitize_data(data: Any, notes: list[str]) -> Any:
    sanitized = sanitize_json(data)[0]
    if len(encode(sanitized)) <= _MAX_DATA_BYTES:
        return sanitized
    notes.append(f"Its structured content has over {_MAX_DATA_BYTES:,} bytes and is left out.")
    return None


def _select_attachments(given: object, notes: list[str]) -> tuple[Attachment, ...]:
    selected: list[Attachment] = []
    room, left_out = _MAX_ATTACHED_CHARS, 0
    for one in given if isinstance(given, tuple | list) else ():  # pyright: ignore[reportUnknownVariableType]
        attachment = _check_attachment(one) if isinstance(one, Attachment) else None
        size = len(attachment.content or "") if attachment is not None else 0
        if attachment is not None and size <= room and len(selected) < _MAX_ATTACHMENTS:
            room -= size
            selected.append(attachment)
        else:
            left_out += 1
    if left_out:
        notes.append(f"{left_out} attachments were left out: too large, too many, or of another type than declared.")
    return tuple(selected)


def _check_attachment(attachment: Attachment) -> Attachment | None:
    """The attachment with the true type of its image. None if it is invalid."""
    if not _is_valid(attachment):
        return None
    if attachment.type != "image" or attachment.content is None:
        return attachment
    kind = detect_image_type(attachment.content)
    return replace(attachment, mime=kind) if kind is not None else None


def _is_valid(one: Attachment) -> bool:
    texts = isinstance(one.path, str) and isinstance(one.mime, str) and isinstance(one.content, str | None)  # pyright: ignore[reportUnnecessaryIsInstance]
    kind = one.type in {"file", "image"}
    if not texts or not kind or not _MIME.fullmatch(one.mime) or not one.path.isprintable() or len(one.path) > 1_000:
        return False
    return one.content is None or (
        len(one.content) <= _MAX_ATTACHED_CHARS and _BASE64.fullmatch(one.content) is not None
    )


def _clean_warnings(given: object) -> tuple[str, ...]:
    texts = given if isinstance(given, tuple | list) else ()  # pyright: ignore[reportUnknownVariableType]
    return tuple(clip_text(_clean(str(text)[:2_000]), 500) for text in texts[:_MAX_WARNINGS])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
