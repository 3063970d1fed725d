"""Asking by rounds, for versions without a handshake: the call is answered with what has to be asked, and is made again
with what was said. The client keeps the state between the two, so it is signed, and all that it says is checked again:
it belongs to one session, one call, one name and arguments, and what was shown; and it counts for a while, once.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import msgspec
from msgspec.structs import replace

from handrail.mcp.caller import Caller
from handrail.mcp.calling import ClientCalls, digest_call
from handrail.mcp.outcomes import Outcome, UnansweredCall
from handrail.mcp.permission.answering import apply_form_answer
from handrail.mcp.permission.forms import build_client_form
from handrail.mcp.permission.signing import MAX_STATE_CHARS, Signer
from handrail.mcp.versions import MODERN
from handrail.protocol.jsonrpc import INVALID_PARAMS, ProtocolError
from handrail.protocol.wire import decode_json

STATE_SECONDS = 24 * 3600.0
"""How long a state counts: people may come back the next day. What waits does so without it, too."""
_MAX_SKEW_SECONDS = 60.0
"""Seconds that a clock may have been set back."""
_MODERN = Caller(protocol=MODERN[-1])
_KEY = "permission"
"""What our one question is called, in the request and in the response."""


class RequestState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the client keeps."""

    place: str
    call_id: str
    shown: tuple[tuple[str, int], ...]
    digest: str
    protocol: str
    time: float
    again: bool


def build_input_required(calls: ClientCalls, asks: UnansweredCall, caller: Caller = _MODERN) -> dict[str, Any]:
    """The answer to a call that asks: the form, and the state that the call is made again with. The call is let go of:
    whoever makes it again takes it up."""
    calls.release(asks.call_id)
    signer, now = calls.signer, time.time()
    state = RequestState(signer.place, asks.call_id, asks.shown, asks.digest, caller.protocol, now, asks.again)
    return {
        "resultType": "input_required",
        "inputRequests": {_KEY: {"method": "elicitation/create", "params": build_client_form(asks, caller)}},
        "requestState": signer.sign(msgspec.json.encode(state)),
    }


def resume_with_answer(
    calls: ClientCalls,
    params: Mapping[str, Any],
    protocol: str = MODERN[-1],
    met: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """What comes of a call that brings an answer. ProtocolError, and nothing is run, where its state is not ours,
    belongs to another call, is too old or was used. `met`: is told under which id it runs, before it does."""
    spelled, responses = params.get("requestState"), params.get("inputResponses")
    if spelled is None:
        _refuse("inputResponses came without the requestState that they belong to")
    state = _checked(spelled, params, calls.signer, protocol)
    name: str = params["name"]
    found = calls.claim(state.call_id, name, state.digest)
    if found is None:
        _refuse("The requestState was used before, or what it asks about is not waiting any more")
    if not isinstance(found, UnansweredCall):
        return found
    met(found.call_id)
    try:
        return _go_on(calls, found, state, responses)
    except BaseException:
        calls.release(found.call_id)
        raise


def _go_on(calls: ClientCalls, asks: UnansweredCall, state: RequestState, responses: object) -> Outcome:
    if asks.shown != state.shown:
        return asks  # it shows something else by now
    if responses is None:
        return calls.refresh(asks) or asks.interim  # nothing was said: it is asked again
    if not isinstance(responses, dict):
        _refuse("inputResponses is no object")
    given: dict[str, Any] = responses  # pyright: ignore[reportUnknownVariableType]  a JSON object
    return apply_form_answer(calls, replace(asks, again=state.again), given.get(_KEY))


def _checked(spelled: object, params: Mapping[str, Any], signer: Signer, protocol: str) -> RequestState:
    payload = signer.verify(spelled) if isinstance(spelled, str) and len(spelled) <= MAX_STATE_CHARS else None
    if payload is None:
        _refuse("The requestState is not one of this server's, or was changed")
    try:
        state = decode_json(payload, RequestState)
    except msgspec.DecodeError:
        _refuse("The requestState is of another version of this server")
    if state.place != signer.place:
        _refuse("The requestState belongs to another session")
    if not isinstance(params.get("name"), str) or state.digest != digest_call(
        params["name"], params.get("arguments", {})
    ):
        _refuse("The requestState belongs to a call of another name, or with other arguments")
    if state.protocol != protocol:
        _refuse(f"The requestState was made for version {state.protocol} of the protocol")
    if not -_MAX_SKEW_SECONDS <= time.time() - state.time <= STATE_SECONDS:
        _refuse("The requestState is too old")
    return state


def _refuse(fact: str) -> NoReturn:
    next_step = "Nothing was run. Make the call again without inputResponses and requestState."
    raise ProtocolError(INVALID_PARAMS, f"{fact}. {next_step}", {"reason": "invalid_request_state"})
