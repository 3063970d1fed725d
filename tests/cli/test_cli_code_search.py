"""handrail code: the tools that know code, for people."""

from pathlib import Path
from typing import Any


def test_code_search_needs_no_setting_and_prints_places_with_reasons(here: Any, workspace: Path) -> None:
    (workspace / "shop.py").write_text("def find_price(article):\n    return 1\n")
    done = here("code", "search", "find the price")
    assert done.code == 0
    assert done.out.startswith("shop.py:1-2 function find_price (name: find price; text: find price)\n")
    hits = here("code", "search", "price", "shop.py", "--max-results", "1", "--json").json["data"]["hits"]
    assert [hit["name"] for hit in hits] == ["find_price"]


def test_code_search_respects_a_person_who_disabled_the_tool(here: Any, config: Any) -> None:
    config('[tools]\ndisable = ["codebase_search"]\n')
    done = here("code", "search", "price")
    assert done.code == 1
    assert "codebase_search is off" in done.err
