"""Pictures in a prompt: by their path, or from the clipboard."""

import asyncio
import base64
import os
import re
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress

import msgspec

from handrail.protocol.errors import UsageError
from handrail.protocol.results import MAX_IMAGE_BYTES, Attachment, find_image_type
from handrail.protocol.text import to_one_line

_MAX_PICTURES = 20
_NAME = re.compile(r"""(?<!\S)@?(?:'([^'\n]+)'|"([^"\n]+)"|((?:\\.|[^\s'"])+))""")
_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_CLIPBOARD_PROGRAMS = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)
_CLIPBOARD_SECONDS = 3.0


class PicturePrompt(msgspec.Struct, frozen=True):
    """A prompt whose pictures have numbers in its text."""

    text: str
    pictures: tuple[Attachment, ...] = ()
    notes: tuple[str, ...] = ()
    """Why files that look like pictures are not attached. The prompt has their names."""


def attach_pictures(text: str, workspace: str, pasted: dict[str, bytes]) -> PicturePrompt:
    """Attaches the pictures that a prompt names by path, and those from the clipboard."""
    pictures: list[Attachment] = []
    notes: list[str] = []

    def replace(found: re.Match[str]) -> str:
        name = found[1] or found[2] or re.sub(r"\\(.)", r"\1", found[3])
        data = _read_picture(os.path.join(workspace, os.path.expanduser(name)), name)
        if data is None:
            return found[0]
        try:
            pictures.append(_build_attachment(data, name, len(pictures) + 1))
        except UsageError as error:
            notes.append(str(error))
            return found[0]
        return f"[picture {len(pictures)}: {to_one_line(name)}]"

    shown = _NAME.sub(replace, text)
    for token, data in pasted.items():
        if token in shown:
            pictures.append(_build_attachment(data, "clipboard", len(pictures) + 1))
            shown = shown.replace(token, f"[picture {len(pictures)}: from the clipboard]")
    return PicturePrompt(shown, tuple(pictures), tuple(notes))


async def read_clipboard_picture() -> bytes | None:
    """The picture in the clipboard. None if there is none, or no program that reads it."""
    for program, *arguments in _CLIPBOARD_PROGRAMS:
        path = shutil.which(program)
        if path is None:
            continue
        with suppress(OSError, TimeoutError):
            process = await asyncio.create_subprocess_exec(path, *arguments, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL)
            try:
                data, _ = await asyncio.wait_for(process.communicate(), _CLIPBOARD_SECONDS)
            except TimeoutError:
                process.kill()
                raise
            if find_image_type(data) is not None:
                return data
    return None


def _read_picture(path: str, name: str) -> bytes | None:
    """The bytes of a picture. None if the word names no picture."""
    if not name.casefold().endswith(_ENDINGS):
        return None
    try:
        with open(path, "rb") as file:
            return file.read(MAX_IMAGE_BYTES + 1)
    except OSError:
        return None


def _build_attachment(data: bytes, name: str, number: int) -> Attachment:
    kind = find_image_type(data)
    if kind is None:
        raise UsageError(f"{to_one_line(name)} is not a PNG, JPEG, GIF or WebP, so it is not attached.")
    if number > _MAX_PICTURES or len(data) > MAX_IMAGE_BYTES:
        limit = f"A prompt has at most {_MAX_PICTURES} pictures of {MAX_IMAGE_BYTES:,} bytes"
        raise UsageError(f"{to_one_line(name)} is not attached. {limit}: attach a smaller copy.")
    return Attachment(type="image", path=name, mime=kind, content=base64.b64encode(data).decode())
