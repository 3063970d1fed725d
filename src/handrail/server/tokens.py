"""The tokens that a server accepts."""

import hashlib
import hmac
import secrets

from handrail.server.wire import ApiCaller, Role
from handrail.state import StoredState

OWNER = "owner"
"""The name of the caller with the token of the start. No named token can have it."""


def make_token() -> str:
    return secrets.token_urlsafe(32)


def digest_token(token: str) -> str:
    """The digest of a random token. It needs no salt: a token is too long to be guessed."""
    return hashlib.sha256(token.encode()).hexdigest()


class TokenBook:
    """The token of the start, and the named tokens of the state folder."""

    def __init__(self, state: StoredState, start_token: str | None) -> None:
        self._named = state.open_tokens()
        self._start_digest = None if start_token is None else digest_token(start_token)

    def find_caller(self, token: str) -> ApiCaller | None:
        """Whose token it is. A removed token counts no more. Takes the same time for every wrong token."""
        return self.find_by_digest(digest_token(token))

    def find_by_digest(self, digest: str) -> ApiCaller | None:
        found = None
        for name, role, own in self._list_all():
            if hmac.compare_digest(own, digest):
                found = ApiCaller(name=name, role=role)
        return found

    def _list_all(self) -> list[tuple[str, Role, str]]:
        named: list[tuple[str, Role, str]] = [(one.name, one.role, one.digest) for one in self._named.list_tokens()]
        return named if self._start_digest is None else [(OWNER, "admin", self._start_digest), *named]
