"""The signed state of a call between two rounds.

A modern client gets a form as the result of its call, and repeats the call with the user's answer. Between the two the
client keeps the state. The state belongs to one session, call, name, arguments and form. It counts once, for a day.
"""

import base64
import binascii
import hashlib
import hmac
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import msgspec
from msgspec.structs import replace

from handrail.mcp.calls import ClientCalls, Outcome, UnansweredCall, digest_call
from handrail.mcp.elicitation import apply_form, build_form
from handrail.mcp.protocol import MODERN, Caller
from handrail.protocol.jsonrpc import INVALID_PARAMS, ProtocolError
from handrail.protocol.wire import decode_json

STATE_SECONDS = 24 * 3600.0
"""How long a state counts. People may come back the next day."""
_MAX_SKEW_SECONDS = 60.0
"""How far a clock may have been set back."""
_MAX_STATE_CHARS = 4_096
_FORMAT = "h1"
"""The beginning of a signed text. It is signed too, so that no other format passes for this one."""
_MODERN = Caller(protocol=MODERN[-1])
_KEY = "permission"
"""The name of the form in `inputRequests` and `inputResponses`."""


class RequestState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    place: str
    call_id: str
    shown: tuple[tuple[str, int], ...]
    digest: str
    protocol: str
    time: float
    again: bool


class Signer:
    """Signs the states of one session."""

    def __init__(self, key: bytes, place: str) -> None:
        self.place = place
        """Identifies the session in its state folder."""
        self._key = key

    @classmethod
    def load(cls, calls: ClientCalls) -> "Signer":
        key, path = calls.deferred.load_key("mcp")
        return cls(key, hashlib.sha256(os.fsencode(path)).hexdigest()[:32])

    def sign(self, payload: bytes) -> str:
        """The payload with its signature, in URL-safe characters."""
        return f"{_FORMAT}.{_encode(payload)}.{_encode(self._compute(payload))}"

    def verify(self, text: str) -> bytes | None:
        """The payload. None if this key did not sign the text exactly as it is."""
        parts = text.split(".") if len(text) <= _MAX_STATE_CHARS else []
        if len(parts) != 3 or parts[0] != _FORMAT:
            return None
        payload, signature = _decode(parts[1]), _decode(parts[2])
        if payload is None or signature is None:
            return None
        return payload if hmac.compare_digest(signature, self._compute(payload)) else None

    def _compute(self, payload: bytes) -> bytes:
        return hmac.digest(self._key, _FORMAT.encode() + b"." + payload, "sha256")


def build_input_required(calls: ClientCalls, call: UnansweredCall, caller: Caller = _MODERN) -> dict[str, Any]:
    """The result of an unanswered call: the form and the state. The call is released for the next round."""
    calls.release(call.call_id)
    signer, now = Signer.load(calls), time.time()
    state = RequestState(signer.place, call.call_id, call.revisions, call.digest, caller.protocol, now, call.again)
    return {
        "resultType": "input_required",
        "inputRequests": {_KEY: {"method": "elicitation/create", "params": build_form(call, caller)}},
        "requestState": signer.sign(msgspec.json.encode(state)),
    }


def resume_with_answer(
    calls: ClientCalls,
    params: Mapping[str, Any],
    protocol: str = MODERN[-1],
    on_claim: Callable[[str], object] = str,
) -> Outcome:
    """The outcome of a call that brings an answer. `on_claim` gets the call's id before it runs.

    Raises ProtocolError, and runs nothing, for a state that is not valid or belongs to another call.
    """
    signed, responses = params.get("requestState"), params.get("inputResponses")
    if signed is None:
        _refuse("inputResponses came without their requestState")
    state = _check_state(signed, params, Signer.load(calls), protocol)
    found = calls.claim(state.call_id, params["name"], state.digest)
    if found is None:
        _refuse("The requestState was used before, or its request no longer waits")
    if not isinstance(found, UnansweredCall):
        return found
    on_claim(found.call_id)
    try:
        return _apply_responses(calls, found, state, responses)
    except BaseException:
        calls.release(found.call_id)
        raise


def _apply_responses(calls: ClientCalls, call: UnansweredCall, state: RequestState, responses: object) -> Outcome:
    if call.revisions != state.shown:
        return call  # its requests have changed
    if responses is None:
        return calls.refresh(call) or call.interim
    if not isinstance(responses, dict):
        _refuse("inputResponses is not an object")
    given: dict[str, Any] = responses  # pyright: ignore[reportUnknownVariableType]  a JSON object
    return apply_form(calls, replace(call, again=state.again), given.get(_KEY))


def _check_state(signed: object, params: Mapping[str, Any], signer: Signer, protocol: str) -> RequestState:
    payload = signer.verify(signed) if isinstance(signed, str) else None
    if payload is None:
        _refuse("The requestState is not from this server, or was changed")
    try:
        state = decode_json(payload, RequestState)
    except msgspec.DecodeError:
        _refuse("The requestState is of another version of this server")
    if state.place != signer.place:
        _refuse("The requestState belongs to another session")
    name = params.get("name")
    if not isinstance(name, str) or state.digest != digest_call(name, params.get("arguments", {})):
        _refuse("The requestState belongs to a call of another name, or with other arguments")
    if state.protocol != protocol:
        _refuse(f"The requestState was made for version {state.protocol} of the protocol")
    if not -_MAX_SKEW_SECONDS <= time.time() - state.time <= STATE_SECONDS:
        _refuse("The requestState is too old")
    return state


def _refuse(fact: str) -> NoReturn:
    advice = "Nothing was run. Make the call again without inputResponses and requestState."
    raise ProtocolError(INVALID_PARAMS, f"{fact}. {advice}", {"reason": "invalid_request_state"})


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes | None:
    """None if it is not spelled as `_encode` does. Nothing has two spellings."""
    try:
        data = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (binascii.Error, UnicodeEncodeError, ValueError):
        return None
    return data if _encode(data) == text else None
