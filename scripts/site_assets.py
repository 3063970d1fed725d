"""Finds the files that a built site loads from other hosts.

python scripts/site_assets.py FOLDER    lists them; exit 1 if there is one

A link that a reader follows may lead anywhere. A script, style, font, image or frame comes from the site itself.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

_LOADS = {
    "link": ("href",),
    "script": ("src",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "object": ("data",),
    "embed": ("src",),
    "use": ("href", "xlink:href"),
}
"""The attributes of each element that make a browser load something."""
_REMOTE = re.compile(r"\s*(?:https?:)?//", re.IGNORECASE)
_CSS_LOADS = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)
_LOADED_LATER = "mermaid"
"""The theme's script loads a program from another host for blocks of this class."""


class _Page(HTMLParser):
    """Collects what a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.remote: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        loaded = [values[name] for name in _LOADS.get(tag, ()) if name in values]
        self.remote += [f"<{tag}> {value}" for value in loaded if _REMOTE.match(value)]
        self.remote += [f"<{tag}> {found}" for found in _CSS_LOADS.findall(values.get("style", ""))]
        if _LOADED_LATER in values.get("class", "").split():
            self.remote.append(f"<{tag}> a {_LOADED_LATER} diagram")


def list_remote(site: Path) -> Iterator[str]:
    """Lists the remote assets of a site, each with its file."""
    for path in sorted(site.rglob("*")):
        if path.suffix == ".html":
            page = _Page()
            page.feed(path.read_text(encoding="utf-8"))
            inline = re.findall(r"<style[^>]*>(.*?)</style>", path.read_text(encoding="utf-8"), re.DOTALL)
            found = page.remote + [one for text in inline for one in _CSS_LOADS.findall(text)]
        elif path.suffix == ".css":
            found = _CSS_LOADS.findall(path.read_text(encoding="utf-8"))
        else:
            continue
        yield from (f"{path.relative_to(site)}: {one}" for one in found)


def main(arguments: list[str]) -> int:
    """Runs the command and returns the exit code."""
    site = Path(arguments[0])
    pages = len(list(site.rglob("*.html")))
    remote = list(list_remote(site))
    for one in remote:
        print(f"loaded from another host: {one}")
    print(f"{site}: {pages} pages, {len(remote)} remote assets")
    return 1 if remote or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
