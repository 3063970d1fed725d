"""Pictures in a prompt: by their path, or from the clipboard."""

import asyncio
import base64
import os
import re
import stat
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress

import msgspec

from handrail.process.desktop import FOLDERS
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
_CLIPBOARD_FOLDERS = (*FOLDERS, "/opt/homebrew/bin")
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

    def attach(data: bytes, name: str) -> bool:
        try:
            pictures.append(_build_attachment(data, name, len(pictures) + 1))
        except UsageError as error:
            notes.append(str(error))
            return False
        return True

    def replace(found: re.Match[str]) -> str:
        name = found[1] or found[2] or re.sub(r"\\(.)", r"\1", found[3])
        data = _read_picture(workspace, name)
        if data is None or not attach(data, name):
            return found[0]
        return f"[picture {len(pictures)}: {to_one_line(name)}]"

    shown = _NAME.sub(replace, text)
    for token, data in pasted.items():
        if token in shown and attach(data, "clipboard"):
            shown = shown.replace(token, f"[picture {len(pictures)}: from the clipboard]")
    return PicturePrompt(shown, tuple(pictures), tuple(notes))


async def read_clipboard_picture(folders: tuple[str, ...] = _CLIPBOARD_FOLDERS) -> bytes | None:
    """The start of the picture in the clipboard: one that is cut is too large to attach.

    None if there is none, or no program of the system that reads it."""
    for program, *arguments in _CLIPBOARD_PROGRAMS:
        path = next((path for one in folders if os.access(path := os.path.join(one, program), os.X_OK)), None)
        if path is None:
            continue
        with suppress(OSError, TimeoutError):
            data = await asyncio.wait_for(_read_output(path, *arguments), _CLIPBOARD_SECONDS)
            if find_image_type(data) is not None:
                return data
    return None


async def _read_output(*command: str) -> bytes:
    """What a program prints. It ends once that is more than a picture may have."""
    process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL)
    assert process.stdout is not None
    try:
        return await process.stdout.readexactly(MAX_IMAGE_BYTES + 1)
    except asyncio.IncompleteReadError as end:
        return end.partial
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()  # what is left in the pipe


def _read_picture(workspace: str, name: str) -> bytes | None:
    """The bytes of a picture. None if the word names no picture."""
    if not name.casefold().endswith(_ENDINGS):
        return None
    try:
        # O_NONBLOCK: does not wait for the writer of a pipe.
        path = os.path.join(workspace, os.path.expanduser(name))
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            is_regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return file.read(MAX_IMAGE_BYTES + 1) if is_regular else None
    except (OSError, ValueError):  # ValueError: no file can have the name
        return None


def _build_attachment(data: bytes, name: str, number: int) -> Attachment:
    kind = find_image_type(data)
    if kind is None:
        raise UsageError(f"{to_one_line(name)} is not a PNG, JPEG, GIF or WebP, so it is not attached.")
    if number > _MAX_PICTURES or len(data) > MAX_IMAGE_BYTES:
        limit = f"A prompt has at most {_MAX_PICTURES} pictures of {MAX_IMAGE_BYTES:,} bytes"
        raise UsageError(f"{to_one_line(name)} is not attached. {limit}: attach a smaller copy.")
    return Attachment(type="image", path=name, mime=kind, content=base64.b64encode(data).decode())
