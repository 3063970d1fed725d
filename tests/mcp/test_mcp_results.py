"""A result as the protocol carries it."""

from typing import Any

import msgspec
import pytest

from handrail import Handrail, Output, tool
from handrail.mcp.results import build_call_result
from handrail.protocol.results import Attachment


@pytest.mark.parametrize(
    ("kind", "mime", "block"),
    [
        ("image", "image/png", {"type": "image", "data": "QQ==", "mimeType": "image/png"}),
        ("file", "audio/wav", {"type": "audio", "data": "QQ==", "mimeType": "audio/wav"}),
        (
            "file",
            "text/csv",
            {"type": "resource", "resource": {"uri": "file:///a%20b.x", "mimeType": "text/csv", "blob": "QQ=="}},
        ),
    ],
)
def test_what_is_attached_is_sent_once_by_its_kind(rail: Any, kind: Any, mime: str, block: dict[str, Any]) -> None:
    attached = Attachment(type=kind, path="a b.x", mime=mime, content="QQ==")

    @tool(read_only=True, auto_execute=True)
    def give() -> Output:
        """Give it."""
        return Output(summary="given", content="text", data=None, attachments=(attached,))

    one: Handrail = rail(tools=[give])
    told = msgspec.json.decode(msgspec.json.encode(build_call_result(one.call("give", {}))))
    assert told["content"] == [{"type": "text", "text": "text"}, block]
    assert told["structuredContent"]["attachments"] == [{"type": kind, "path": "a b.x", "mime": mime, "content": None}]
    assert told["isError"] is False


def test_a_file_that_is_only_named_is_not_sent(rail: Any) -> None:
    @tool(read_only=True, auto_execute=True)
    def give() -> Output:
        """Name it."""
        named = Attachment(type="file", path="a.txt", mime="text/plain")
        return Output(summary="given", content="text", data=None, attachments=(named,))

    assert len(build_call_result(rail(tools=[give]).call("give", {}))["content"]) == 1
