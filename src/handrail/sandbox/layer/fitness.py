"""Whether a layer can lie over folders here, and if not, why."""

import os

_ESCAPED = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


def why_no_layer(roots: tuple[str, ...]) -> str | None:
    """The reason in words; None where nothing speaks against it."""
    for place in _mount_points():
        for root in roots:
            if place.startswith(f"{root.rstrip('/')}/"):
                return f"something is mounted in {root}, which would be missing in it"
    return None


def _mount_points() -> list[str]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        return [_plain(line.split(" ", 5)[4]) for line in table]


def _plain(place: str) -> str:
    for escaped, character in _ESCAPED.items():
        place = place.replace(escaped, character)
    return os.path.normpath(place)
