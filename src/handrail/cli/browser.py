"""The person's browser, opened at an address with a token."""

import html
import os
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from handrail.cli.output import warn

_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>handrail</title>
"""


@contextmanager
def open_browser(address: str) -> Generator[None]:
    """Opens the address. Other users can read the command line of a browser, so it names a private file instead."""
    if not _has_browser():
        warn("handrail: there is no browser here; open the address above in one")
        yield
        return
    with tempfile.NamedTemporaryFile("w", prefix="handrail-", suffix=".html", encoding="utf-8") as page:
        page.write(_PAGE.format(address=html.escape(address)))
        page.flush()
        threading.Thread(target=_open, args=(Path(page.name).as_uri(),), daemon=True).start()
        yield


def _has_browser() -> bool:
    """Whether a window can open. Without a display the module would start a browser in this terminal."""
    if os.environ.get("BROWSER") or sys.platform == "darwin":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(page: str) -> None:
    """It may last as long as the browser does."""
    if not webbrowser.open(page):
        warn("handrail: no browser could be opened; open the address above in one")
