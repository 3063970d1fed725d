"""A defect in the server over HTTP tells the client no more than that it is one, and the person where."""

import asyncio
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from handrail.mcp.http.application import DefectReporter

_NO_CONTEXT: Any = None


def test_a_client_reads_no_word_of_a_defect_and_a_person_where_it_is() -> None:
    told: list[str] = []

    async def broken(_: object) -> None:
        raise ValueError("secret")

    with pytest.raises(MCPError) as caught:
        asyncio.run(DefectReporter(told.append).wrap_request(_NO_CONTEXT, broken))
    assert caught.value.error.message == "An internal error stopped the request (ValueError)."
    [line] = told
    assert "ValueError at " in line
    assert "secret" not in line


def test_what_was_meant_for_the_client_reaches_it() -> None:
    told: list[str] = []

    async def refuses(_: object) -> None:
        raise MCPError(-32602, "no such tool")

    with pytest.raises(MCPError, match="no such tool"):
        asyncio.run(DefectReporter(told.append).wrap_request(_NO_CONTEXT, refuses))
    assert told == []
