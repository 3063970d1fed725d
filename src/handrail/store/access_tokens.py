"""The named tokens of `handrail serve`. A token itself is stored nowhere, only its digest."""

import binascii
import os
import re
import time
from datetime import UTC, datetime
from typing import Literal

import msgspec

from handrail.protocol.digest import sha256
from handrail.protocol.errors import UsageError
from handrail.protocol.text import render_value
from handrail.store.grants import SmallFiles

OWNER = "owner"
"""The name of the caller with the token of the start. No named token can have it."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_TICK_NS = 50_000_000
"""The time in which two changes of a folder may have one timestamp."""


class AccessToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    role: Literal["viewer", "operator", "admin"]
    digest: str
    """The SHA-256 of the token in hexadecimal digits."""
    created: datetime


class AccessTokens:
    """The tokens in a folder, one file each. Other processes add and remove tokens too."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._files = SmallFiles(path, AccessToken, "tokens")
        self._stamp: tuple[int, int] | None = None
        self._tokens: tuple[AccessToken, ...] = ()

    @staticmethod
    def make() -> str:
        """A random token."""
        text = binascii.b2a_base64(os.urandom(32), newline=False).rstrip(b"=")
        return text.decode().replace("+", "-").replace("/", "_")

    @staticmethod
    def digest(token: str) -> str:
        """The digest of a random token. It needs no salt: a token is too long to be guessed."""
        return sha256(token.encode()).hexdigest()

    def list_tokens(self) -> tuple[AccessToken, ...]:
        """All tokens by their names. The folder is read again only after a change."""
        stamp = self._read_stamp()
        if stamp is None or stamp != self._stamp:
            tokens = self._files.read_all(lambda token: token.name) if stamp is not None else []
            self._tokens = tuple(sorted(tokens, key=lambda token: token.name))
            is_old = stamp is not None and time.time_ns() - stamp[1] > _TICK_NS
            self._stamp = stamp if is_old else None
        return self._tokens

    def add(self, name: str, role: Literal["viewer", "operator", "admin"]) -> str:
        """Returns the new token. UsageError: the name is taken, or no name for a token."""
        if not _NAME.fullmatch(name) or name == OWNER:
            rule = f"letters, digits, dot, dash and underscore, at most 40, and not {OWNER!r}"
            raise UsageError(f"the name of a token is made of {rule}: {render_value(name)}")
        if name in self._files.names():
            raise UsageError(f"there is a token named {name} already")
        token = self.make()
        self._files.write(name, AccessToken(name, role, self.digest(token), datetime.now(UTC)))
        return token

    def remove(self, name: str) -> bool:
        """Returns whether there was a token of this name."""
        return bool(_NAME.fullmatch(name)) and self._files.drop(name)

    def _read_stamp(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns
