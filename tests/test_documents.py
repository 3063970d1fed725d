"""The documents: what they link to is there, and their programs run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent
PAGES = sorted([*HOUSE.glob("*.md"), *HOUSE.glob("docs/*.md")])
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#([^)\s]+))?\)")


def headings(page: Path) -> set[str]:
    """The names that a page's headings have in links."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_link_leads_to_something(page: Path) -> None:
    for path, part in LINK.findall(page.read_text()):
        target = page.parent / path
        assert target.exists(), f"{page.name} links to {path}"
        assert not part or target.suffix != ".md" or part in headings(target), f"{page.name} links to {path}#{part}"


def test_the_model_of_your_own_works_as_it_is_written(tmp_path: Path) -> None:
    text = (HOUSE / "docs" / "models.md").read_text().partition("## A model of your own")[2]
    program = text.partition("```python\n")[2].partition("```")[0]
    state = {
        "PATH": os.environ["PATH"],
        "HANDRAIL_STATE_DIR": str(tmp_path / "state"),
        "HOME": str(tmp_path),
        "PYTHONPATH": str(HOUSE / "src"),
    }
    (folder := tmp_path / "workspace").mkdir()
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, env=state, capture_output=True, check=False)
    assert (done.stdout.decode(), done.stderr.decode()) == ("done Done. ('hello.txt',)\n", "")
