"""docs/reference/protocol.md and the recorded samples are what a fresh run gives."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.edit.fuzzy.strategies import FORGIVEN
from handrail.protocol.errors import CODES, MEANING
from handrail.protocol.schema import WIRE_TYPES
from handrail.sandbox.bubblewrap import find_bubblewrap

ROOT = Path(__file__).resolve().parent.parent.parent
can_play = pytest.mark.skipif(
    find_bubblewrap(os.environ) is None or shutil.which("curl") is None,
    reason="a command of the run reaches for a host: that needs bubblewrap and curl",
)
PAGE = (ROOT / "docs" / "reference" / "protocol.md").read_text(encoding="utf-8")


def run(root: Path, option: str, *, umask: int = 0o022, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, root / "scripts" / "protocol", option],
        capture_output=True,
        encoding="utf-8",
        check=False,
        umask=umask,
        env={**os.environ, **environment},
    )


@can_play
@pytest.mark.parametrize(
    ("umask", "environment"),
    [
        (0o022, {}),
        (0o077, {"HANDRAIL_MODE": "plan", "TZ": "Asia/Tokyo", "LC_ALL": "C", "CI": "1", "PYTHONHASHSEED": "7"}),
    ],
)
def test_a_fresh_run_gives_what_is_stored(umask: int, environment: dict[str, str]) -> None:
    ran = run(ROOT, "--check", umask=umask, **environment)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@can_play
def test_what_is_out_of_date_is_named_with_the_difference_and_written_anew(tmp_path: Path) -> None:
    for folder in ("scripts", "src", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    page = tmp_path / "docs" / "reference" / "protocol.md"
    page.write_text(PAGE.replace("# The handrail protocol", "# A protocol"), encoding="utf-8")
    samples = tmp_path / "src" / "handrail" / "protocol" / "samples.json"
    recorded = samples.read_text(encoding="utf-8")
    samples.write_text(recorded.replace("keep the title", "keep it"), encoding="utf-8")

    stale = run(tmp_path, "--check")
    assert stale.returncode == 1
    assert "docs/reference/protocol.md is out of date; scripts/protocol --write brings it up to date." in stale.stderr
    assert "-# A protocol\n+# The handrail protocol" in stale.stderr
    assert "samples.json is out of date" in stale.stderr

    assert run(tmp_path, "--write").returncode == 0
    assert page.read_text(encoding="utf-8") == PAGE
    assert samples.read_text(encoding="utf-8") == recorded
    assert run(tmp_path, "--check").returncode == 0


@pytest.mark.parametrize("name", WIRE_TYPES)
def test_the_page_describes_every_wire_type_and_says_where_its_sample_is_from(name: str) -> None:
    section = PAGE.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
    assert section.count("*Sample, from a run*\n\n```json\n{") == 1


def test_the_reference_has_every_error_code_with_its_meaning() -> None:
    codes = (ROOT / "docs" / "reference" / "codes.md").read_text(encoding="utf-8")
    for code in CODES:
        assert f"| `{code}` | {MEANING[code]} |" in codes


def test_every_link_of_the_page_leads_to_a_heading() -> None:
    headings = [line.lstrip("# ") for line in PAGE.splitlines() if line.startswith("#")]
    anchors = {"".join(c for c in name.lower().replace(" ", "-") if c.isalnum() or c in "-_") for name in headings}
    links = {part.partition(")")[0] for part in PAGE.split("](#")[1:]}
    assert links <= anchors
    assert len(anchors) == len(headings)


def test_the_page_names_every_strategy_of_edit_in_order() -> None:
    [row] = [line for line in PAGE.splitlines() if line.startswith("| `strategy` | string or null |")]
    named = re.findall(r"`([a-z-]+)`", row.partition("found the place")[2])
    assert named == ["exact", *FORGIVEN]
