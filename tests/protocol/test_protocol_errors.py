"""The closed list of error codes, and the versions a call may ask for."""

from typing import Any

import pytest

from handrail.protocol.errors import CODES, MEANING, RETRYABLE, ToolError
from handrail.protocol.tool_spec import parse_major_version
from handrail.protocol.version import PROTOCOL_VERSION, VERSION

ALL_CODES = """
    INVALID_ARGUMENT UNKNOWN_TOOL UNSUPPORTED_VERSION NOT_FOUND NOT_A_FILE NOT_A_DIRECTORY BINARY_FILE ACCESS_DENIED
    NO_SPACE IO_ERROR NO_MATCH AMBIGUOUS_MATCH NO_CHANGE OMITTED_TEXT STALE_FILE CONFLICT OUTSIDE_WORKSPACE
    POLICY_DENIED PERMISSION_REQUIRED PERMISSION_DENIED PROCESS_NOT_FOUND PROCESS_ENDED TIMEOUT CANCELLED INTERRUPTED
    LIMIT_EXCEEDED UNAVAILABLE SANDBOX_UNAVAILABLE INTERNAL
"""


def test_the_error_codes_are_those_of_the_contract() -> None:
    assert list(CODES) == ALL_CODES.split()


def test_every_code_has_a_meaning_of_its_own() -> None:
    assert list(MEANING) == list(CODES)
    assert len(set(MEANING.values())) == len(CODES)
    assert all(meaning.endswith(".") and meaning[0].isupper() for meaning in MEANING.values())


@pytest.mark.parametrize("code", CODES)
def test_an_error_says_whether_trying_again_may_help(code: Any) -> None:
    info = ToolError(code, "What happened.", details=[1]).info()
    assert (info.code, info.message, info.details) == (code, "What happened.", [1])
    assert info.retryable is (code in RETRYABLE)


def test_what_a_person_or_a_rule_refused_is_not_worth_trying_again() -> None:
    assert not RETRYABLE & {"POLICY_DENIED", "PERMISSION_DENIED", "PERMISSION_REQUIRED", "OUTSIDE_WORKSPACE"}
    assert not RETRYABLE & {"INVALID_ARGUMENT", "UNKNOWN_TOOL", "UNSUPPORTED_VERSION", "INTERRUPTED"}


@pytest.mark.parametrize(
    ("version", "first"),
    [
        ("1.0.0", 1), ("1", 1), ("0", 0), ("12.3", 12), ("2.x", 2), ("007.1", 7), ("999999999", 999_999_999),
        ("", None), ("v1.0", None), (".1", None), ("-1.0", None), ("+1", None), (" 1", None), ("1 ", None),
        ("1e3", None), ("one", None), ("²", None), ("٣.0", None), ("1_0", None), ("9" * 10, None),
        ("9" * 10_000, None), ("\ud800", None),
    ],
)  # fmt: skip
def test_the_major_version_is_the_first_number(version: str, first: int | None) -> None:
    assert parse_major_version(version) == first


def test_our_own_versions_have_three_numbers() -> None:
    for version in (VERSION, PROTOCOL_VERSION):
        assert [part.isdigit() for part in version.split(".")] == [True] * 3
    assert parse_major_version(PROTOCOL_VERSION) == 1
