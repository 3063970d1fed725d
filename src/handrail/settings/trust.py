"""The projects that the user trusts, as recorded in the state folder."""

import os
import stat
from datetime import datetime
from typing import Literal

import msgspec

from handrail.protocol.errors import StoreError
from handrail.protocol.wire import decode_json
from handrail.settings.errors import quote_path
from handrail.settings.paths import MCP_FILE, PROJECT_FILE, TOOLS_FOLDER, is_located_in

_MAX_FILE_BYTES = 16 * 1024 * 1024


class Trust(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The SHA-256 of the files that are trusted."""

    digest: str
    """Of the settings file. Empty: there was none."""
    time: datetime
    servers: str = ""
    """Of .mcp.json. Empty: there was none."""
    tools: str = ""
    """Of the tool files, their names included. Empty: there were none."""

    def get_digest(self, file: str) -> str:
        return {PROJECT_FILE: self.digest, MCP_FILE: self.servers, TOOLS_FOLDER: self.tools}[file]


class TrustFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All trust by the real path of the workspace."""

    schema: Literal["handrail.trust/1"] = "handrail.trust/1"
    projects: dict[str, Trust] = {}


def read_file_trust(state: str, workspace: str, file: str, digest: str) -> tuple[bool, str]:
    """Whether this content of handrail.toml, .mcp.json or the tool files is trusted, and a remark for the user."""
    if is_located_in(state, workspace):
        return False, "the state folder is in the workspace, so its records of trust are ignored"
    try:
        trust = read_trust(state).get(workspace)
    except StoreError as error:
        return False, f"{error} Until then the project is not trusted."
    trusted = "" if trust is None else trust.get_digest(file)
    if trusted in {"", digest}:
        return bool(trusted), ""
    return False, f"{file} changed since you trusted it: check it before you trust it again"


def build_trust_path(state: str) -> str:
    return os.path.join(state, "trust.json")


def read_trust(state: str) -> dict[str, Trust]:
    """All trust by workspace. StoreError: handrail did not write the file."""
    path = build_trust_path(state)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _build_error(path, getattr(error, "strerror", None) or str(error)) from None
    try:
        return decode_json(_read_own_file(path, descriptor), TrustFile).projects
    except (msgspec.DecodeError, UnicodeDecodeError, OSError):
        raise _build_error(path, "handrail did not write it") from None
    finally:
        os.close(descriptor)


def _read_own_file(path: str, descriptor: int) -> bytes:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
        raise _build_error(path, "handrail did not write it")
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise _build_error(path, "another user could have written it")
    with open(descriptor, "rb", closefd=False) as stream:
        return stream.read(_MAX_FILE_BYTES)


def _build_error(path: str, reason: str) -> StoreError:
    problem = f"The record of trust {quote_path(path)} cannot be used: {reason}"
    return StoreError(problem, advice="Check it, then remove it.")
