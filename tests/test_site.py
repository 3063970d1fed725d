"""The site of the documentation: it loads nothing from another host, and what it is made from is up to date."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from site_assets import list_remote, main  # noqa: E402

DEEP = os.environ.get("HANDRAIL_DEEP", "") not in {"", "0"}
LOCAL = '<a href="https://example.org/">a link</a><link rel="stylesheet" href="a.css"><script src="../b.js"></script>'


@pytest.mark.parametrize(
    "loaded",
    [
        '<script src="https://cdn.example.org/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.org/a.css">',
        '<img src="http://example.org/a.png">',
        "<style>@import 'https://example.org/a.css';</style>",
        '<p style="background: url(https://example.org/a.png)">',
        '<pre class="mermaid">',
    ],
)
def test_a_page_that_loads_something_from_another_host_is_named(tmp_path: Path, loaded: str) -> None:
    (tmp_path / "a.html").write_text(LOCAL)
    assert main([str(tmp_path)]) == 0
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.html").write_text(LOCAL + loaded)
    [found] = list_remote(tmp_path)
    assert found.startswith("deep/b.html: ")
    assert main([str(tmp_path)]) == 1


def test_a_font_of_another_host_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text('@font-face { src: url("https://fonts.example.org/a.woff2"); } a { b: url(c.png) }')
    assert list(list_remote(tmp_path)) == ["a.css: https://fonts.example.org/a.woff2"]


def test_an_empty_site_is_no_success(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 1


def test_the_reference_is_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "reference", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(not DEEP, reason="installs the generator of the site, and builds all of it")
def test_the_site_builds_strictly() -> None:
    done = subprocess.run([ROOT / "scripts" / "docs"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    index = (ROOT / "build/site/search/search_index.json").read_text()
    assert "how-to/undo-changes.html" in index
