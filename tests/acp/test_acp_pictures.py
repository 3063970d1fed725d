"""handrail acp: pictures that the person puts into a prompt."""

import base64
from pathlib import Path

import pytest
from acp.helpers import audio_block, embedded_blob_resource, image_block, resource_block, text_block
from editor import played

from handrail.acp import prompts
from handrail.acp.prompts import parse_prompt
from handrail.models.base import ModelRequest
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.errors import UsageError
from handrail.protocol.messages import UserMessage

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n and so on").decode()
GIF = base64.b64encode(b"GIF89a and so on").decode()


def test_the_model_is_sent_the_pictures_and_the_editor_is_shown_them_again(start, workspace: Path) -> None:
    asked: list[ModelRequest] = []

    def see(request: ModelRequest) -> ScriptedReply:
        asked.append(request)
        return ScriptedReply(text="A cat.")

    async def scene() -> None:
        async with start("--model", "scripted:x", model=ScriptedModel([see, see])) as opened:
            session = await opened.new()
            uri = (workspace / "cat.gif").as_uri()
            blocks = [text_block("What is "), image_block(PNG, "image/png"), image_block(GIF, "image/gif", uri=uri)]
            await opened.agent.prompt(session_id=session, prompt=blocks)
            said = next(one for one in asked[-1].messages if isinstance(one, UserMessage))
            assert said.text == "What is [picture 1][picture 2: @cat.gif]"
            assert [(one.mime, one.content) for one in said.attachments] == [("image/png", PNG), ("image/gif", GIF)]
            await opened.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
            words, *pictures = (one.content for one in opened.editor.of("user_message_chunk"))
            assert words.text == said.text
            assert [(one.mime_type, one.data) for one in pictures] == [("image/png", PNG), ("image/gif", GIF)]
            await opened.say(session, "and now?")
            assert said in asked[-1].messages

    played(scene)


def test_a_picture_that_is_embedded_as_a_file_is_one_too() -> None:
    cat = resource_block(embedded_blob_resource("file:///project/cat.png", PNG, mime_type="image/png"))
    said = parse_prompt([cat], "/project")
    assert (said.text, [one.path for one in said.pictures]) == ("[picture 1: @cat.png]", ["cat.png"])


@pytest.mark.parametrize("data", ["", "no base64!", base64.b64encode(b"<svg/>").decode()])
def test_what_is_no_picture_that_models_take_is_refused_whatever_it_is_called(data: str) -> None:
    with pytest.raises(UsageError, match="Picture 1 is not a PNG, JPEG, GIF or WebP"):
        parse_prompt([image_block(data, "image/png")], "/project")


def test_pictures_that_are_too_many_or_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(parse_prompt([image_block(PNG, "image/png")] * 20, "/project").pictures) == 20
    with pytest.raises(UsageError, match="at most 20 pictures"):
        parse_prompt([image_block(PNG, "image/png")] * 21, "/project")
    monkeypatch.setattr(prompts, "MAX_IMAGE_BYTES", 16)
    with pytest.raises(UsageError, match="of 16 bytes each, and 32 together; picture 1 has 18"):
        parse_prompt([image_block(PNG, "image/png")], "/project")
    monkeypatch.setattr(prompts, "MAX_IMAGE_BYTES", 20)
    with pytest.raises(UsageError, match="and 40 together; picture 3 has 18"):
        parse_prompt([image_block(GIF, "image/gif")] * 3, "/project")
    with pytest.raises(UsageError, match="no audio"):
        parse_prompt([audio_block(PNG, "audio/wav")], "/project")
