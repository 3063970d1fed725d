"""Keeps from being loaded what only looks needed."""

import sys


def import_msgspec_fast() -> None:
    """Loads it without typing_extensions, which it asks for and can do without: since Python 3.11 typing has the same.
    Where that is installed, and all that talks to models or to other servers brings it, it loads inspect, ast and dis:
    a sixth of what `handrail call` takes. Whoever asks for it afterwards gets it."""
    if "msgspec" in sys.modules or "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # pyright: ignore[reportArgumentType]  how Python says that there is none
    try:
        import msgspec  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport]  this is the moment
    finally:
        del sys.modules["typing_extensions"]
