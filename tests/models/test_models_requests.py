"""What a provider is sent: valid on its wire whatever was said, and the same bytes for the same talk.

The wires check every question by their rules; a test here fails when one of them is broken."""

import asyncio
import json
from typing import Any

import pytest
from tests.models.asking import (
    PICTURE,
    READ,
    assistant,
    call,
    found,
    heard,
    pieces,
    question,
    results,
    text,
    user,
)
from tests.wires.anthropic_wire import marks
from tests.wires.openai_wire import events
from tests.wires.server import Answer, WireServer

from handrail.models.base import ModelError, ModelRequest, ToolOffer
from handrail.models.messages import drop_pictures, has_pictures
from handrail.protocol.messages import (
    CallPart,
    Detail,
    Message,
    ReasoningPart,
    SummaryMessage,
    TextPart,
)
from handrail.protocol.results import Attachment


def sent(wire: WireServer, *messages: Message) -> list[dict[str, Any]]:
    """The messages that the server got, but the system prompt."""
    wire.says("ok")
    pieces(wire, question(*messages))
    return [message for message in wire.received[-1].body["messages"] if message["role"] != "system"]


def blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [{name: value for name, value in block.items() if name != "cache_control"} for block in message["content"]]


def test_everything_that_is_said_in_a_row_is_one_message(wire: WireServer) -> None:
    summary = SummaryMessage(text="So far: nothing.", kept_from=1)
    [message] = sent(wire, summary, user("go on"), user("You were cut off.", by_loop=True))
    said = "So far: nothing.\n\ngo on\n\nYou were cut off."
    assert message["content"] == said or blocks(message) == [{"type": "text", "text": said}]


def test_results_and_what_is_said_after_them(openai_wire, anthropic_wire) -> None:
    talk = (user("go"), assistant(text("I look."), call(1), call(2)), results(1, 2), user("and?"))
    roles = [message["role"] for message in sent(openai_wire, *talk)]
    assert roles == ["user", "assistant", "tool", "tool", "user"]
    *_, last = sent(anthropic_wire, *talk)
    assert [block["type"] for block in last["content"]] == ["tool_result", "tool_result", "text"]


def test_schemas_go_out_as_they_are(openai_wire, anthropic_wire) -> None:
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string", "title": "Path", "pattern": "^a", "default": "a"}},
        "$defs": {"x": {"const": 3}},
        "additionalProperties": False,
    }
    tool = ToolOffer(name="odd", description="Odd.", schema=schema)
    for wire in (openai_wire, anthropic_wire):
        wire.says("ok")
        pieces(wire, question(tools=(READ, tool)))
    assert openai_wire.received[0].body["tools"][1]["function"]["parameters"] == schema
    assert "strict" not in openai_wire.received[0].body["tools"][1]["function"]
    assert anthropic_wire.received[0].body["tools"][1]["input_schema"] == schema


def test_a_failed_result_is_marked_where_the_wire_can(openai_wire, anthropic_wire) -> None:
    talk = (user("go"), assistant(call(1)), results(1, ok=False, content="There is no a."))
    assert sent(openai_wire, *talk)[-1]["content"] == "There is no a."
    [block] = sent(anthropic_wire, *talk)[-1]["content"]
    assert block["is_error"] is True
    assert block["content"] == [{"type": "text", "text": "There is no a."}]


def test_pictures_go_along_and_other_files_do_not(openai_wire, anthropic_wire) -> None:
    other = Attachment(type="file", path="a.bin", mime="application/octet-stream", content="AAAA")
    talk = (user("look"), assistant(call(1)), results(1, content="a.png", attachments=(PICTURE, other)))
    *_, tool, picture = sent(openai_wire, *talk)
    assert tool["role"] == "tool"
    assert tool["content"] == "a.png"
    [url] = [part["image_url"]["url"] for part in picture["content"] if part["type"] == "image_url"]
    assert url == f"data:image/png;base64,{PICTURE.content}"
    [block] = sent(anthropic_wire, *talk)[-1]["content"]
    source = {"type": "base64", "media_type": "image/png", "data": PICTURE.content}
    assert {"type": "image", "source": source} in block["content"]


def test_pictures_of_the_person_go_along_with_what_they_say(openai_wire, anthropic_wire) -> None:
    talk = user("what is [picture 1]?", attachments=(PICTURE,))
    for wire, kind in ((openai_wire, "image_url"), (anthropic_wire, "image")):
        [said] = sent(wire, talk)
        picture, words = said["content"]
        assert (picture["type"], words["text"]) == (kind, "what is [picture 1]?")
        assert PICTURE.content in str(picture)


def test_a_model_that_takes_no_pictures_is_told_where_the_person_put_one(openai_wire) -> None:
    request = question(user("look", attachments=(PICTURE,)))
    assert has_pictures(request)
    [message] = drop_pictures(request).messages
    assert (message.text, message.attachments) == ("look\n[a picture was left out; this model accepts none]", ())


def test_a_model_that_takes_no_pictures_is_asked_without_them_from_then_on(openai_wire) -> None:
    talk = question(user("look"), assistant(call(1)), results(1, content="a.png", attachments=(PICTURE,)))
    openai_wire.refuses(500, "image input is not supported by this model")
    openai_wire.says("I cannot see it.")
    model = found(openai_wire)

    async def ask() -> None:
        with pytest.raises(ModelError, match="does not accept pictures") as raised:
            await heard(model, talk)
        assert (raised.value.retryable, raised.value.after) == (True, 0)
        await heard(model, talk)
        await model.close()

    asyncio.run(ask())
    *_, told = openai_wire.received[1].body["messages"]
    assert told["content"] == "a.png\n[a picture was left out; this model accepts none]"


def test_nothing_empty_is_sent(wire: WireServer) -> None:
    sent(wire, user(" "), assistant(text(" \n"), call(1)), results(1, content=""), assistant(text("")), user("go"))


@pytest.mark.parametrize("args", ['{"path": "a', [1], 3, "x", None])
def test_arguments_that_were_no_object_do_not_make_the_talk_invalid(wire: WireServer, args: Any) -> None:
    part = CallPart(tool_call_id="call-1-00", name="read", args=args)
    sent(wire, user("go"), assistant(part), results(1, ok=False, content="no JSON"))


def test_a_provider_gets_back_what_it_gave(anthropic_wire) -> None:
    calls = [("toolu_01", "read", '{"path": "a"}')]
    anthropic_wire.says("I look.", reasoning="Hm.", signature="c2ln", redacted="eHh4", calls=calls)
    answer = pieces(anthropic_wire)[-1]
    parts = [_with_id(part, number) for number, part in enumerate(answer.parts)]
    message = assistant(*parts, model=anthropic_wire.model)
    _, said, told = sent(anthropic_wire, user("hello"), message, results(3))
    assert said["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eHh4"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_01", "name": "read", "input": {"path": "a"}},
    ]
    assert told["content"][0]["tool_use_id"] == "toolu_01"


def test_a_server_gets_its_field_for_thoughts_back(openai_wire) -> None:
    openai_wire.says("So.", reasoning="Hm.", reasoning_field="reasoning", calls=[("c1", "read", "{}")])
    answer = pieces(openai_wire)[-1]
    message = assistant(*[_with_id(part, number) for number, part in enumerate(answer.parts)])
    _, said, _ = sent(openai_wire, user("hello"), message, results(2))
    assert said["reasoning"] == "Hm."


def test_thoughts_between_tags_are_told_and_not_sent_back(openai_wire) -> None:
    stream = b"".join(events("123So", parts=5))
    for sign, said in ((b'"1"', b'"<think>"'), (b'"2"', b'"Hm."'), (b'"3"', b'"</think>"')):
        stream = stream.replace(sign, said)
    openai_wire.sends(Answer(pieces=(stream,)))
    answer = pieces(openai_wire)[-1]
    assert [type(part) for part in answer.parts] == [ReasoningPart, TextPart]
    _, said, _ = sent(openai_wire, user("hello"), assistant(*answer.parts), user("and?"))
    assert said == {"role": "assistant", "content": "So"}


def test_what_another_provider_gave_stays_here(wire: WireServer) -> None:
    detail = Detail(provider="google", values={"signature": "xyz", "id": "t1"})
    said = assistant(
        ReasoningPart(text="A secret thought.", detail=detail),
        text("So.", detail=detail),
        call(1, provider_call_id="theirs:1", detail=detail),
        model="google:gemini-3-pro",
    )
    talk = sent(wire, user("go"), said, results(1))
    assert "xyz" not in json.dumps(talk)
    assert "secret" not in json.dumps(talk)
    assert "theirs" not in json.dumps(talk)
    assert "call-1-00" in json.dumps(talk)


def test_a_server_that_gives_every_call_one_id_is_sent_different_ones(wire: WireServer) -> None:
    theirs = [call(number, provider_call_id="call_0") for number in (1, 2, 3)]
    said = assistant(*theirs[:2], model=wire.model), results(1, 2), assistant(theirs[2], model=wire.model), results(3)
    assert "call_0" in json.dumps(sent(wire, user("go"), *said))


def test_halved_characters_can_be_sent(wire: WireServer) -> None:
    sent(wire, user("a \ud83d b"), assistant(call(1, {"path\udc00": ["\ud83d"]})), results(1, content="\udcff"))


def test_the_cache_points_are_at_the_tools_the_system_prompt_and_the_end(anthropic_wire) -> None:
    anthropic_wire.says("ok")
    pieces(anthropic_wire, question(user("go"), assistant(call(1), call(2)), results(1, 2), tools=(READ, _OTHER)))
    assert sorted(marks(anthropic_wire.received[0].body)) == ["/messages/2/content/1", "/system/0", "/tools/1"]


_OTHER = ToolOffer(name="ls", description="Lists.", schema={"type": "object", "properties": {}})


def _with_id(part: Any, number: int) -> Any:
    if not isinstance(part, CallPart):
        return part
    return CallPart(
        tool_call_id=f"call-{number:x}-00", name=part.name, args=part.args, provider_call_id=part.provider_call_id
    )


def test_the_length_of_an_answer_can_be_limited(openai_wire, anthropic_wire) -> None:
    for wire in (openai_wire, anthropic_wire):
        wire.says("ok")
        asked = question()
        pieces(wire, ModelRequest(system="", messages=asked.messages, most_tokens=77))
        assert wire.received[0].body["max_tokens"] == 77
