"""The variables that commands were to get when somebody was asked about them: whoever answers elsewhere takes these."""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from handrail.protocol.error import StoreError
from handrail.protocol.reading import decode_json
from handrail.store.folder import make_private, write_private

_FOLDER = "environments"
_UNFINISHED = ".new"


def hash_variables(variables: Mapping[str, str]) -> str:
    """What tells these variables from any others."""
    told = "\0".join(f"{name}={variables[name]}" for name in sorted(variables))
    return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()


def has_variables(session: str, digest: str) -> bool:
    """Whether those of a digest are kept already."""
    return os.path.exists(os.path.join(session, _FOLDER, digest))


def save_variables(session: str, variables: Mapping[str, str]) -> None:
    """Keeps them in a session's folder, by their digest. Where that cannot be, a yes counts only where they are the
    same anyway."""
    folder = os.path.join(session, _FOLDER)
    path = os.path.join(folder, hash_variables(variables))
    if not os.path.exists(path):
        with suppress(OSError, StoreError, UnicodeEncodeError):
            data = msgspec.json.encode(dict(variables))
            make_private(folder)
            write_private(path, data, _UNFINISHED)


def load_variables(session: str, digest: str) -> dict[str, str] | None:
    """Those of a digest; None where they were not kept, or are others by now."""
    try:
        with open(os.path.join(session, _FOLDER, os.path.basename(digest)), "rb") as file:
            variables = decode_json(file.read(), dict[str, str])
    except (OSError, ValueError):
        return None
    return variables if hash_variables(variables) == digest else None
