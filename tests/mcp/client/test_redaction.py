"""What a server was given in secret is recognised in its words, wherever it was given and however they are cut."""

from typing import Any

import pytest
from mcp import MCPError

from handrail.mcp.client.redaction import Redactor
from handrail.mcp.client.supervisor import describe_close_reason, describe_failure
from handrail.mcp.client.tools import convert_failure
from handrail.mcp.client.transports import CloseReason
from handrail.settings.mcp_json import ConfiguredServer
from handrail.settings.mcp_servers import ServerTable

KEY = "k3y-of-a-server"
RANDOM = "a1b2c3d4e5f6g7h8i9j0k1l2m3"
GIVEN: list[tuple[dict[str, Any], str, str]] = [
    ({"variables": (("API_KEY", KEY),)}, KEY, "[API_KEY]"),
    ({"headers": (("Authorization", f"Bearer {KEY}"),)}, KEY, "[Authorization]"),
    ({"headers": (("Authorization", f"Basic {KEY}"),)}, KEY, "[Authorization]"),
    ({"headers": (("Authorization", f"token {KEY}"),)}, KEY, "[Authorization]"),
    ({"variables": (("DATABASE", f"postgres://me:{KEY}@host/db"),)}, KEY, "[DATABASE]"),
    ({"words": ("server", "--api-key", KEY)}, KEY, "[api-key]"),
    ({"words": ("server", f"--api-key={KEY}")}, KEY, "[api-key]"),
    ({"words": ("server", "-v", "ghp_abcdefghijklmnop1234")}, "ghp_abcdefghijklmnop1234", "[argument]"),
    ({"url": f"https://host/mcp?api_key={KEY}"}, KEY, "[api_key]"),
    ({"url": f"https://host/s/{RANDOM}/mcp"}, RANDOM, "[url]"),
]


@pytest.mark.parametrize(("given", "secret", "shown"), GIVEN)
def test_a_secret_is_known_wherever_it_was_given(given: dict[str, Any], secret: str, shown: str) -> None:
    assert _redactor(**given).redact(f"it is {secret}!") == f"it is {shown}!"


@pytest.mark.parametrize("text", ["/srv/a1b2c3d4e5f6g7h8i9j0k1l2m3/project", "stdio", "--verbose"])
def test_what_else_stands_in_a_command_is_told_as_it_is(text: str) -> None:
    assert _redactor(words=("server", text, "--port", "8080")).redact(f"in {text}: 8080") == f"in {text}: 8080"


@pytest.mark.parametrize("before", range(280, 300))
def test_half_of_a_secret_is_no_more_told_than_all_of_it(before: int) -> None:
    redactor, end = _redactor(variables=(("API_KEY", KEY),)), CloseReason()
    text = "x" * before + KEY
    end.note("it ended")
    failure = convert_failure(MCPError(-32603, "y" * 1_700 + text), SERVER, "tool", redactor)
    assert failure is not None
    for told in (
        describe_failure(RuntimeError(text), redactor),
        describe_close_reason(end, _Said(text), redactor),  # pyright: ignore[reportArgumentType]
        redactor.redact_progress("y" * 200 + text),
        failure.message,
    ):
        assert KEY[:3] not in told


class _Said:
    """A program that ended."""

    how_it_ended = None

    def __init__(self, stderr_tail: str) -> None:
        self.stderr_tail = stderr_tail


SERVER = ConfiguredServer(name="a", table=ServerTable())


def _redactor(**given: Any) -> Redactor:
    return Redactor(ConfiguredServer(name="a", table=ServerTable(), **given))
