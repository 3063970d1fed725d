"""What another server's tool gave, as the runtime takes it: cleaned, bounded, and nothing that it may not say."""

import re
from typing import Any

from msgspec.structs import replace

from handrail.process.cleaning import clean_output
from handrail.protocol.errors import CODES, ToolError
from handrail.protocol.results import Attachment
from handrail.protocol.text import clip_text
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import encode, escape_surrogates, sanitize_json
from handrail.runtime.foreign.pictures import detect_image_type
from handrail.tools.contract import Output

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
