"""Signatures of texts in OpenSSH's format, by `ssh-keygen`."""

import os
import re
import subprocess
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Sequence
from contextlib import suppress
from textwrap import wrap
from typing import NamedTuple

from handrail.process.desktop import FOLDERS
from handrail.protocol.digest import sha256
from handrail.protocol.errors import StoreError
from handrail.store.state_dir import make_private, make_temporary_folder

_PROGRAM = "ssh-keygen"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----\n", "-----END SSH SIGNATURE-----\n"
_START = b"SSHSIG\0\0\0\1"
"""The beginning of a signature, with its version. `ssh-keygen` also takes version 0, which is not signed."""
_LINE_CHARS = 70
_MAX_CHARS = 16_384
_KEY = re.compile(r"(?:^|\s)((?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+) +([A-Za-z0-9+/]+={0,2})(?:\s|$)", re.MULTILINE)
_SIGNER = "signer"
_SECONDS = 120
"""A person may have to type a passphrase, or touch a security key."""


class PublicKey(NamedTuple):
    kind: str
    code: str
    """The key in base64, as in a `.pub` file."""

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` shows it."""
        return f"SHA256:{b64encode(sha256(b64decode(self.code)).digest()).decode().rstrip('=')}"


def make_key(path: str) -> None:
    """Makes an Ed25519 key for its owner only, unless there is one."""
    if os.path.lexists(path):
        return
    folder = os.path.dirname(path)
    make_private(folder)
    with make_temporary_folder("key-", folder) as own:
        new = os.path.join(own, "key")
        _run(("-q", "-t", "ed25519", "-N", "", "-C", "handrail", "-f", new), "a key cannot be made")
        with suppress(FileExistsError):  # another process has just made it
            os.link(new, path)


def read_public_key(path: str) -> PublicKey | None:
    """The public part of a private key. None if there is no key."""
    if not os.path.lexists(path):
        return None
    return next(iter(parse_public_keys(_run(("-y", "-f", path), f"the key {path} cannot be used").decode())), None)


def parse_public_keys(text: str) -> list[PublicKey]:
    """The keys of a `.pub` file, of `authorized_keys`, or of a list such as `https://github.com/NAME.keys`."""
    return [PublicKey(*found) for found in _KEY.findall(text)]


def sign(data: bytes, key: str, namespace: str) -> str:
    """The signature of a text by a private key, or by the agent that has the key of a `.pub` file."""
    signed = _run(("-Y", "sign", "-f", key, "-n", namespace), f"the key {key} cannot sign", data).decode()
    if (blob := _decode(signed)) is None:
        raise StoreError(f"{_PROGRAM} made no signature", advice="Update OpenSSH.")
    return _encode(blob)


def find_signer(data: bytes, signature: str, namespace: str) -> PublicKey | None:
    """The key that signed exactly this text. None if the text or the signature was changed."""
    blob = _decode(signature)
    key = _read_key(blob) if blob is not None and signature == _encode(blob) else None
    if key is None:
        return None
    with make_temporary_folder("handrail-signature-") as folder:
        signed, signers = os.path.join(folder, "signature"), os.path.join(folder, "signers")
        for path, text in ((signed, signature), (signers, f"{_SIGNER} {key.kind} {key.code}\n")):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        words = ("-Y", "verify", "-f", signers, "-I", _SIGNER, "-n", namespace, "-s", signed)
        return key if _start(words, data).returncode == 0 else None


def _decode(signature: str) -> bytes | None:
    body = signature.removeprefix(_BEGIN).removesuffix(_END)
    try:
        blob = b64decode(body.replace("\n", ""), validate=True) if len(body) <= _MAX_CHARS else b""
    except (Error, ValueError):
        return None
    return blob if blob.startswith(_START) else None


def _encode(blob: bytes) -> str:
    """The only spelling of a signature that counts, so that no byte of it can be changed unseen."""
    return "\n".join([_BEGIN.rstrip(), *wrap(b64encode(blob).decode(), _LINE_CHARS), _END])


def _read_key(blob: bytes) -> PublicKey | None:
    """The public key in a signature: a string, which begins with the string of its kind."""
    start = len(_START) + 4
    key = blob[start : start + int.from_bytes(blob[start - 4 : start], "big")]
    kind = key[4 : 4 + int.from_bytes(key[:4], "big")].decode("ascii", "replace")
    found = parse_public_keys(f"{kind} {b64encode(key).decode()}")
    return found[0] if len(found) == 1 and found[0].kind == kind else None


def _run(words: Sequence[str], problem: str, data: bytes = b"") -> bytes:
    done = _start(words, data)
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise StoreError(f"{problem}: {reason or f'{_PROGRAM} failed'}", advice=f"See: man {_PROGRAM}")
    return done.stdout


def _start(words: Sequence[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    """Runs the system's own program: PATH may lead to a folder that an agent can write to."""
    program = next((path for folder in FOLDERS if os.access(path := os.path.join(folder, _PROGRAM), os.X_OK)), None)
    if program is None:
        raise StoreError(f"receipts are signed by {_PROGRAM}, which is not installed", advice="Install OpenSSH.")
    try:
        return subprocess.run([program, *words], input=data, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603  no shell
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StoreError(f"{program} did not end: {error}", advice="Try again.") from error
