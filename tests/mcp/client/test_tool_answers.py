"""What servers answer and tell, as results and events of ours; and how fast they may talk."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import CallToolResult
from serving import Place, hostile

from handrail.mcp.client.redaction import Redactor
from handrail.mcp.client.sources import find_sources
from handrail.mcp.client.tools import build_output
from handrail.mcp.client.transports import RateLimiter
from handrail.settings.mcp_json import ConfiguredServer
from handrail.settings.mcp_servers import ServerTable

NO_SECRETS = Redactor(ConfiguredServer(name="a", table=ServerTable()))


def test_what_is_no_text_is_attached_or_named(place: Place) -> None:
    with place.session(hostile("Shows")) as rail:
        result = rail.call("mcp__other__echo", {"text": "x"})
    assert result.content.splitlines() == [
        "first",
        "[sound was left out: audio/wav, 4 characters]",
        "[link: file:///a]",
        "inside",
        "[file:///c was left out: application/zip, 4 characters]",
    ]
    (picture,) = result.attachments
    assert (picture.type, picture.mime, picture.path) == ("image", "image/png", "picture-1.png")


def test_how_a_call_goes_on_is_told_to_live_views(place: Place) -> None:
    told: list[Any] = []
    with place.session(hostile("Progresses")) as rail:
        rail.specs()
        rail.subscribe(lambda event: told.append(getattr(event, "output", None)))
        assert rail.call("mcp__other__echo", {"text": "done"}).content == "done"
    steps = [one for one in told if isinstance(one, str) and "step" in one]
    assert steps
    assert steps == sorted(steps)


@pytest.mark.parametrize("size", [10, 5_000_000])
def test_pictures_that_are_too_large_are_named(size: int) -> None:
    block = {"type": "image", "data": "A" * size, "mimeType": "image/png"}
    answer = CallToolResult.model_validate({"content": [block]})
    output = build_output(answer, None, NO_SECRETS)
    assert bool(output.attachments) == (size < 1_000)
    assert ("left out" in output.content) == (size > 1_000)


def test_structured_content_alone_is_text_too() -> None:
    answer = CallToolResult.model_validate({"content": [], "structuredContent": {"a": 1}})
    output = build_output(answer, None, NO_SECRETS)
    assert output.content == '{\n  "a": 1\n}'
    assert output.data == {"a": 1}


json_values = st.recursive(
    st.none() | st.booleans() | st.text() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(json_values, st.text("abcdefgh123", min_size=6, max_size=20))
def test_a_secret_is_in_no_value_wherever_it_stood(value: Any, secret: str) -> None:
    secrets = Redactor(ConfiguredServer(name="a", table=ServerTable(), variables=(("API_KEY", secret),)))
    around = {secret: [value, f"it is {secret}!", {"deep": (f"{secret}{secret}")}]}
    assert secret not in repr(secrets.redact_json(around)).replace("[API_KEY]", "")


@given(st.lists(st.floats(0, 2), max_size=200), st.integers(1, 50), st.floats(0.5, 100))
def test_nobody_talks_faster_than_the_pace(gaps: list[float], at_once: int, a_second: float) -> None:
    pace, now, sent = RateLimiter(at_once, a_second), 1.0, []
    for gap in gaps:
        now += gap
        now += pace.wait(now)
        sent.append(now)
    for first in range(len(sent)):
        for last in range(first, len(sent)):
            assert last - first + 1 <= at_once + (sent[last] - sent[first]) * a_second + 1.001


@given(st.lists(st.integers(1, 100), max_size=50), st.integers(1, 500), st.floats(1, 1_000))
def test_nobody_says_more_than_the_pace_either(sizes: list[int], at_once: int, a_second: float) -> None:
    pace, now, said = RateLimiter(at_once, a_second), 1.0, 0
    for size in sizes:
        now += pace.wait(now, size)
        said += size
        assert said <= at_once + (now - 1.0) * a_second + 0.001


def test_the_restricted_profile_has_no_servers(place: Place) -> None:
    loaded = place.loaded('[mcp.servers.a]\ncommand = "b"\n', wait='profile = "restricted"\n')
    found = find_sources(loaded, str(place.workspace), place.environ)
    assert found.sources == ()
    assert found.notes == ("The restricted profile does not use other MCP servers.",)
