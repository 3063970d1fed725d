"""What the two wires want of a talk, as small functions: each gives what is wrong, nothing where all is right."""

from collections.abc import Sequence

from handrail.protocol.messages import AssistantMessage, CallPart, Message, ResultsMessage, SummaryMessage, UserMessage

Row = tuple[str, str | tuple[str, ...]]
"""Role, and text or the ids of calls."""


def chat_completions(messages: Sequence[Message]) -> list[str]:
    """OpenAI's: every call of an assistant message is answered once, by the `tool` messages directly after it."""
    wrong: list[str] = []
    open_calls: list[str] = []
    for message in messages:
        if isinstance(message, ResultsMessage):
            for result in message.results:
                if result.tool_call_id in open_calls:
                    open_calls.remove(result.tool_call_id)
                else:
                    wrong.append(f"a result of no call: {result.tool_call_id}")
            continue
        wrong += [f"a call without a result: {call}" for call in open_calls]
        open_calls = [call.tool_call_id for call in message.calls] if isinstance(message, AssistantMessage) else []
        if not _says_something(message):
            wrong.append(f"an empty message: {type(message).__name__}")
    return wrong + [f"a call without a result: {call}" for call in open_calls]


def messages_api(messages: Sequence[Message]) -> list[str]:
    """Anthropic's: the user begins and ends, the two take turns (what one side says in a row is one turn), and results
    stand first in the turn after their calls."""
    wrong: list[str] = []
    turns = _turns(messages)
    if not turns or turns[0][0] != "user" or turns[-1][0] != "user":
        wrong.append("the user does not begin and end it")
    asked: list[str] = []
    for role, turn in turns:
        if role == "assistant":
            asked = [
                part.tool_call_id for one in turn for part in getattr(one, "parts", ()) if isinstance(part, CallPart)
            ]
            continue
        results = [result.tool_call_id for one in turn if isinstance(one, ResultsMessage) for result in one.results]
        if sorted(results) != sorted(asked):
            wrong.append(f"calls {asked}, results {results}")
        if results and not isinstance(turn[0], ResultsMessage):
            wrong.append("results do not stand first in their turn")
        asked = []
    return wrong


def _turns(messages: Sequence[Message]) -> list[tuple[str, list[Message]]]:
    turns: list[tuple[str, list[Message]]] = []
    for message in messages:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        if not turns or turns[-1][0] != role:
            turns.append((role, []))
        turns[-1][1].append(message)
    return turns


def _says_something(message: Message) -> bool:
    if isinstance(message, AssistantMessage):
        return bool(message.calls or message.text.strip())
    return isinstance(message, UserMessage | SummaryMessage) and bool(message.text.strip())
