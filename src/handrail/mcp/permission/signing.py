"""Signs what a client keeps for us between two rounds of a call, and tells what was signed here from what was not."""

import base64
import binascii
import hashlib
import hmac
import os

from handrail.store.state_dir import StateFolder

MAX_STATE_CHARS = 4_096
"""Characters of what is signed and spelled out; a longer one is not ours."""
_FORM = "h1"
"""What it begins with. It is signed too, so that no text of one form passes for one of another."""


class Signer:
    """Signs for one session."""

    def __init__(self, key: bytes, place: str) -> None:
        self.place = place
        """What the session is told by, among all of this state folder."""
        self._key = key

    def sign(self, payload: bytes) -> str:
        """The payload and its signature, in characters that every client leaves alone."""
        return f"{_FORM}.{_spelled(payload)}.{_spelled(self._signature(payload))}"

    def verify(self, text: str) -> bytes | None:
        """The payload; None where it was not signed with this key, or is spelled in another way than ours."""
        form, _, rest = text[: MAX_STATE_CHARS + 1].partition(".")
        spelled, _, signature = rest.partition(".")
        payload, given = _read(spelled), _read(signature)
        if form != _FORM or len(text) > MAX_STATE_CHARS or payload is None or given is None:
            return None
        return payload if hmac.compare_digest(given, self._signature(payload)) else None

    def _signature(self, payload: bytes) -> bytes:
        return hmac.digest(self._key, _FORM.encode() + b"." + payload, "sha256")


def load_signer(session_folder: str) -> Signer:
    """The signer of a session: the key is its state folder's."""
    state = StateFolder.find(session_folder)
    place = os.path.relpath(session_folder, state.path)  # names the workspace, by a digest, and the session
    return Signer(state.load_key("mcp"), hashlib.sha256(os.fsencode(place)).hexdigest()[:32])


def _spelled(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _read(text: str) -> bytes | None:
    """Only as it is spelled here: nothing has two spellings."""
    try:
        data = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (binascii.Error, UnicodeEncodeError, ValueError):
        return None
    return data if _spelled(data) == text else None
