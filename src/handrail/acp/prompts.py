"""Prompts of an editor, slash commands included."""

import os
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

import msgspec
from acp.helpers import ContentBlock
from acp.schema import (
    AvailableCommand,
    AvailableCommandInput,
    AvailableCommandsUpdate,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
    UnstructuredCommandInput,
)

from handrail.acp.cards import format_code_block
from handrail.agent.prompt import fence_text
from handrail.async_api import AsyncHandrail
from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.results import MAX_IMAGE_BYTES, Attachment, detect_image_type
from handrail.protocol.text import to_one_line

CONTINUE = "continue"
"""The command that runs a turn: it goes on with the last one."""
_MAX_PROMPT_CHARS = 1_000_000
_MAX_PICTURES = 20
"""A provider that rejects a request for its size rejects all later ones too."""
_COMMANDS: dict[str, tuple[str, str | None]] = {
    "undo": (
        "Undo the last change in this workspace, or the change with this number",
        "the number of a change (optional)",
    ),
    "redo": ("Redo the last undone change", None),
    "diff": ("Show the last change, or the change with this number", "the number of a change (optional)"),
    CONTINUE: ("Resume the last turn, if it was interrupted or waits for you", None),
}
"""The description of each command, and the hint for its argument."""


class PromptContent(msgspec.Struct, frozen=True):
    """A prompt for the model. The text names the pictures in their places, for logs and summaries."""

    text: str
    pictures: tuple[Attachment, ...] = ()


def parse_prompt(blocks: Sequence[ContentBlock], workspace: str) -> PromptContent:
    """The prompt for the model. UsageError if it is empty, too large, or of a kind that models do not get."""
    builder = _PromptBuilder(workspace)
    for block in blocks:
        builder.add(block)
    text = "\n\n".join(("".join(builder.words), *builder.material))
    if not text.strip():
        raise UsageError("The prompt is empty. Nothing was done.")
    if len(text) > _MAX_PROMPT_CHARS:
        size = f"The prompt has {len(text):,} characters, and a model reads at most {_MAX_PROMPT_CHARS:,} at once."
        raise UsageError(f"{size} Nothing was done. Name files instead of pasting them.")
    return PromptContent(text, tuple(builder.pictures))


class _PromptBuilder:
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
                self.words.append(f"@{_format_uri(block.uri, self._workspace)}")
            case EmbeddedResourceContentBlock():
                self._embed(block.resource)
            case ImageContentBlock():
                self._add_picture(block.data, f"@{_format_uri(block.uri, self._workspace)}" if block.uri else "")
            case _:
                supported = f"A prompt of this agent has text, files and pictures, and no {block.type}."
                raise UsageError(f"{supported} Nothing was done.")

    def _embed(self, resource: TextResourceContents | BlobResourceContents) -> None:
        name = _format_uri(resource.uri, self._workspace)
        if isinstance(resource, TextResourceContents):
            self.words.append(f"@{name}")
            self.material.append(fence_text("file", resource.text, path=name.replace('"', "'")))
        elif detect_image_type(resource.blob) is not None:
            self._add_picture(resource.blob, f"@{name}")
        else:
            self.words.append(f"@{name}")
            self.material.append(f"(@{name} is not a text file and was left out)")

    def _add_picture(self, data: str, name: str) -> None:
        kind, size = detect_image_type(data), _estimate_bytes(data)
        total = size + sum(_estimate_bytes(one.content or "") for one in self.pictures)
        number = len(self.pictures) + 1
        if kind is None:
            raise UsageError(f"Picture {number} is not a PNG, JPEG, GIF or WebP. Nothing was done.")
        if size > MAX_IMAGE_BYTES or number > _MAX_PICTURES or total > 2 * MAX_IMAGE_BYTES:
            most = f"{_MAX_PICTURES} pictures of {MAX_IMAGE_BYTES:,} bytes each, and {2 * MAX_IMAGE_BYTES:,} together"
            raise UsageError(f"A prompt has at most {most}; picture {number} has {size:,}. Nothing was done.")
        self.words.append(f"[picture {number}{f': {name}' if name else ''}]")
        self.pictures.append(Attachment(type="image", path=name[1:] or f"picture {number}", mime=kind, content=data))


def _estimate_bytes(base64: str) -> int:
    return len(base64) * 3 // 4


def _format_uri(uri: str, workspace: str) -> str:
    """The path of a file as tools name it. Any other address as it is."""
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


# Slash commands


def build_commands_update() -> AvailableCommandsUpdate:
    """The commands that the editor offers."""
    commands = [
        AvailableCommand(
            name=name,
            description=description,
            input=AvailableCommandInput(root=UnstructuredCommandInput(hint=hint)) if hint else None,
        )
        for name, (description, hint) in _COMMANDS.items()
    ]
    return AvailableCommandsUpdate(session_update="available_commands_update", available_commands=commands)


def parse_command(prompt: str) -> tuple[str, str] | None:
    """The command of a prompt and its argument. None if it is a prompt for the model."""
    name, _, argument = prompt.strip().partition(" ")
    return (name[1:], argument.strip()) if name.startswith("/") and name[1:] in _COMMANDS else None


async def run_command(rail: AsyncHandrail, name: str, argument: str) -> str:
    """Runs a command without the model. Returns Markdown for the person."""
    try:
        number = _parse_number(argument)
        if name == "diff":
            diff = await rail.stored_diff(number)
            return f"Change {diff.numbers[0]}:\n\n{format_code_block(diff.text)}\n"
        result = await (rail.undo(number) if name == "undo" else rail.redo())
    except (ToolError, UsageError) as error:
        return f"{error}\n"
    return f"{result.error.message if result.error is not None else result.summary}\n"


def _parse_number(argument: str) -> int | None:
    if argument and not (argument.isascii() and argument.isdigit() and len(argument) < 12):
        raise UsageError(f"a change has a number, not {argument[:80]!r}. Nothing was done.")
    return int(argument) if argument else None
