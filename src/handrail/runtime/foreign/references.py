"""References within one schema: `#` and `#/…`. What lies elsewhere is never fetched."""

from typing import Any, cast


def resolve_reference(root: dict[str, Any], reference: Any) -> Any:
    """What a reference leads to; None where it is none, or leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = root
    for part in reference[1:].split("/")[1:] if reference.startswith("#/") else reference[1:] and [reference]:
        found = _inside(found, part.replace("~1", "/").replace("~0", "~"))
    return found


def _inside(found: Any, name: str) -> Any:
    if isinstance(found, dict):
        return cast("dict[str, Any]", found).get(name)
    if isinstance(found, list) and name.isascii() and name.isdigit() and len(name) < 6:
        entries = cast("list[Any]", found)
        return entries[int(name)] if int(name) < len(entries) else None
    return None
