"""A loop over the OpenAI SDK that works in the current folder with handrail's tools, and asks before it changes a file.

python openai_sdk.py "Make the prices."
"""

import os
import sys
from typing import Any

from openai import OpenAI

from handrail import Answer, Handrail
from handrail.frameworks.calls import describe_request
from handrail.frameworks.message_calls import ToolMessages, WaitingMessage
from handrail.frameworks.openai_sdk import run_calls


def ask(outcome: ToolMessages | WaitingMessage) -> ToolMessages:
    """Shows each preview. An empty line approves it, anything else is the reason why not."""
    while isinstance(outcome, WaitingMessage):
        request = outcome.requests[0]
        print(describe_request(request)["text"])
        reason = input("Enter to approve, or the reason why not: ")
        outcome = outcome.answer(request, Answer(kind="deny" if reason else "once", reason=reason or None))
    return outcome


def main(prompt: str) -> None:
    client, model = OpenAI(), os.environ.get("MODEL", "gpt-5.4")
    messages: list[Any] = [{"role": "user", "content": prompt}]
    with Handrail(".", mode="ask", on_permission="park") as rail:
        while True:
            with client.chat.completions.stream(model=model, messages=messages, tools=rail.openai_tools()) as stream:
                completion = stream.get_final_completion()
            message = completion.choices[0].message
            messages.append(message.to_dict())
            results = ask(run_calls(rail, completion)).messages
            if not results:
                break
            messages += results
    print(message.content)


if __name__ == "__main__":
    main(sys.argv[1])
