"""What the person says in an editor: words, files that they point at, and text that they put beside it."""

import os
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from acp.helpers import ContentBlock
from acp.schema import (
    EmbeddedResourceContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from handrail.acp.errors import refused
from handrail.agent.prompt.fences import fenced
from handrail.terminal.visible import one_line

_LARGEST = 1_000_000


def prompt_of(blocks: Sequence[ContentBlock], workspace: str) -> str:
    """The prompt as the model reads it; refused where it says nothing, or in a way that models are not sent."""
    words: list[str] = []
    material: list[str] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                words.append(block.text)
            case ResourceContentBlock():
                words.append(f"@{_place(block.uri, workspace)}")
            case EmbeddedResourceContentBlock():
                place = _place(block.resource.uri, workspace)
                words.append(f"@{place}")
                material.append(_material(block, place))
            case _:
                raise refused(f"A prompt of this agent has text and files, and no {block.type}. Nothing was done.")
    prompt = "\n\n".join(("".join(words), *material))
    if not prompt.strip():
        raise refused("The prompt is empty. Nothing was done.")
    if len(prompt) > _LARGEST:
        told = f"The prompt has {len(prompt):,} characters, and a model reads at most {_LARGEST:,} at once."
        raise refused(f"{told} Nothing was done. Point at files instead of putting them in.")
    return prompt


def _material(block: EmbeddedResourceContentBlock, place: str) -> str:
    resource = block.resource
    if not isinstance(resource, TextResourceContents):
        return f"(@{place} is no text; it was not put in)"
    return fenced("file", resource.text, path=place.replace('"', "'"))


def _place(uri: str, workspace: str) -> str:
    """A file as tools name it; anything else by its address."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # a bracket that is not closed
        return one_line(uri)
    path = unquote(parts.path)
    if parts.scheme != "file" or not path.startswith("/"):
        return one_line(uri)
    inside = os.path.relpath(path, workspace)
    shown = path if inside == ".." or inside.startswith("../") else inside
    return one_line(f"{shown}#{parts.fragment}" if parts.fragment else shown)
