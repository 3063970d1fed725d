"""What kind of picture a server sent, by its bytes: a model's provider refuses one that is not what it is said to be,
and would refuse it again with every question after it."""

from base64 import b64decode
from binascii import Error

_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def detect_image_type(content: str) -> str | None:
    """The kind, of a picture in base64; None where it is none."""
    try:
        data = b64decode(content, validate=True)
    except (Error, ValueError):
        return None
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _KINDS if data.startswith(start)), None)
