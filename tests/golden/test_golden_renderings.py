"""What the event adapters make of recorded sessions is what they always made of them."""

from pathlib import Path

import pytest
from bundles import read_bundle
from renderings import NAMES, RECORDED, RENDERED, events_of, rendered

from handrail.dialects.adapters import ADAPTERS


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_recorded_session_is_rendered_as_it_always_was(adapter: str, name: str, tmp_path: Path) -> None:
    """`python tests/golden/record.py --renderings` writes the files anew: look at the difference before it is kept."""
    golden = RENDERED / f"{adapter}-{name}.jsonl"
    assert rendered(adapter, events_of(read_bundle(RECORDED / f"{name}.json"), tmp_path)) == golden.read_text("utf-8")


def test_there_is_a_file_for_each_and_no_other() -> None:
    assert {file.name for file in RENDERED.iterdir()} == {f"{one}-{name}.jsonl" for one in ADAPTERS for name in NAMES}
