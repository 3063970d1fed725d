"""What the person says in an editor: words, files that they point at, and text and pictures that they put beside it."""

import os
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

import msgspec
from acp.helpers import ContentBlock
from acp.schema import (
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from handrail.acp.errors import build_refusal
from handrail.agent.prompt import fence_text
from handrail.protocol.results import Attachment
from handrail.protocol.text import to_one_line
from handrail.runtime.foreign.call import detect_image_type
from handrail.tools.read import MAX_IMAGE_BYTES

_MAX_PROMPT_CHARS = 1_000_000
_MAX_PICTURES = 20
"""Like the bytes of all together: a provider that refuses a question for its size refuses every one after it, too."""


class PromptContent(msgspec.Struct, frozen=True):
    """What the model is sent. Pictures are named in the text, in their places: so logs and summaries know of them."""

    text: str
    pictures: tuple[Attachment, ...] = ()


def parse_prompt(blocks: Sequence[ContentBlock], workspace: str) -> PromptContent:
    """The prompt as the model reads it; refused where it says nothing, or in a way that models are not sent."""
    gathered = _Gathered(workspace)
    for block in blocks:
        gathered.add(block)
    prompt = "\n\n".join(("".join(gathered.words), *gathered.material))
    if not prompt.strip():
        raise build_refusal("The prompt is empty. Nothing was done.")
    if len(prompt) > _MAX_PROMPT_CHARS:
        told = f"The prompt has {len(prompt):,} characters, and a model reads at most {_MAX_PROMPT_CHARS:,} at once."
        raise build_refusal(f"{told} Nothing was done. Point at files instead of putting them in.")
    return PromptContent(prompt, tuple(gathered.pictures))


class _Gathered:
    """The parts of a prompt up to now."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self.words: list[str] = []
        self.material: list[str] = []
        self.pictures: list[Attachment] = []

    def add(self, block: ContentBlock) -> None:
        match block:
            case TextContentBlock():
                self.words.append(block.text)
            case ResourceContentBlock():
                self.words.append(f"@{_place(block.uri, self._workspace)}")
            case EmbeddedResourceContentBlock():
                self._embed(block.resource)
            case ImageContentBlock():
                self._show(block.data, f"@{_place(block.uri, self._workspace)}" if block.uri else "")
            case _:
                told = f"A prompt of this agent has text, files and pictures, and no {block.type}."
                raise build_refusal(f"{told} Nothing was done.")

    def _embed(self, resource: TextResourceContents | BlobResourceContents) -> None:
        place = _place(resource.uri, self._workspace)
        if isinstance(resource, TextResourceContents):
            self.words.append(f"@{place}")
            self.material.append(fence_text("file", resource.text, path=place.replace('"', "'")))
        elif detect_image_type(resource.blob) is not None:
            self._show(resource.blob, f"@{place}")
        else:
            self.words.append(f"@{place}")
            self.material.append(f"(@{place} is no text; it was not put in)")

    def _show(self, data: str, name: str) -> None:
        kind, size = detect_image_type(data), _size(data)
        together = size + sum(_size(one.content or "") for one in self.pictures)
        number = len(self.pictures) + 1
        if kind is None:
            raise build_refusal(
                f"Picture {number} is no PNG, JPEG, GIF or WebP, which models are sent. Nothing was done."
            )
        if size > MAX_IMAGE_BYTES or number > _MAX_PICTURES or together > 2 * MAX_IMAGE_BYTES:
            most = f"{_MAX_PICTURES} pictures of {MAX_IMAGE_BYTES:,} bytes each, and {2 * MAX_IMAGE_BYTES:,} together"
            raise build_refusal(f"A prompt has at most {most}; picture {number} has {size:,}. Nothing was done.")
        self.words.append(f"[picture {number}{f': {name}' if name else ''}]")
        self.pictures.append(Attachment(type="image", path=name[1:] or f"picture {number}", mime=kind, content=data))


def _size(data: str) -> int:
    """Bytes of what is base64, or a few more."""
    return len(data) * 3 // 4


def _place(uri: str, workspace: str) -> str:
    """A file as tools name it; anything else by its address."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # a bracket that is not closed
        return to_one_line(uri)
    path = unquote(parts.path)
    if parts.scheme != "file" or not path.startswith("/"):
        return to_one_line(uri)
    inside = os.path.relpath(path, workspace)
    shown = path if inside == ".." or inside.startswith("../") else inside
    return to_one_line(f"{shown}#{parts.fragment}" if parts.fragment else shown)
