"""SHA-256. Short contents take Python's own code: OpenSSL takes longer to load and to start."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _hashlib import HASH
    from hashlib import sha256 as short_sha256
else:
    try:
        from _sha2 import sha256 as short_sha256  # Python 3.12
    except ImportError:
        from _sha256 import sha256 as short_sha256

SHORT_BYTES = 4_096


def sha256(data: bytes = b"") -> "HASH":
    """A hash object, as `hashlib.sha256` makes it. Without data, much is expected to follow."""
    if 0 < len(data) <= SHORT_BYTES:
        return short_sha256(data)
    import hashlib  # noqa: PLC0415  see above

    return hashlib.sha256(data)
