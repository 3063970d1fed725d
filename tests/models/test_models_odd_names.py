"""A model may call what is no name at all. It is told so, and the talk goes on: no wire refuses it for the name."""

import pytest
from tests.models.asking import answered, assistant, question, user
from tests.wires.gemini_wire import GeminiWire
from tests.wires.server import WireServer

from handrail.protocol.messages import CallPart, CallResult, Message, ResultsMessage

NAMES = ["functions.read", "", " ", "read file", "read\n", "読む", "<|channel|>read", "n" * 300]


def talk(name: str, model: str) -> tuple[Message, ...]:
    called = CallPart(tool_call_id="call-1-00", name=name, args={})
    told = CallResult(tool_call_id="call-1-00", name=name, ok=False, content="Unknown tool")
    return user("hello"), assistant(called, model=model), ResultsMessage(results=(told,))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_no_wire_takes_is_sent_as_one_that_it_takes(wire: WireServer, name: str) -> None:
    wire.says("ok")
    answered(wire, question(*talk(name, wire.model)))
    assert wire.problems == []


def test_on_gemini_call_and_result_have_the_same_name(gemini_wire: GeminiWire) -> None:
    gemini_wire.says("ok")
    answered(gemini_wire, question(*talk("functions.read", gemini_wire.model)))
    _, said, told = gemini_wire.received[0].body["contents"]
    assert said["parts"][0]["functionCall"]["name"] == "functions_read"
    assert told["parts"][0]["functionResponse"]["name"] == "functions_read"
