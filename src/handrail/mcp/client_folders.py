"""The folders that a client says it works on."""

from typing import Any, cast
from urllib.parse import unquote, urlsplit

_MAX_LISTED_ROOTS = 256


def parse_client_folders(result: dict[str, Any]) -> tuple[str, ...]:
    """The folders of this machine that an answer to `roots/list` names; what is none is passed over."""
    listed = result.get("roots")
    roots = cast("list[Any]", listed)[:_MAX_LISTED_ROOTS] if isinstance(listed, list) else []
    found = [_folder(cast("dict[str, Any]", root).get("uri")) for root in roots if isinstance(root, dict)]
    return tuple(folder for folder in found if folder is not None)


def _folder(uri: object) -> str | None:
    if not isinstance(uri, str):
        return None
    try:
        parts = urlsplit(uri)
        path = unquote(parts.path, errors="surrogateescape")
    except ValueError:
        return None
    local = parts.scheme == "file" and parts.netloc in {"", "localhost"}
    whole = "?" not in uri and "#" not in uri  # else it names another folder than it was meant to, mostly one above
    return path if local and whole and path.startswith("/") and "\0" not in path else None
