"""The console on a phone, in the dark, to screen readers; with pictures of its pages."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.web.console import DEEP, Console, answer, drawer, expect_end

import oracles

pytestmark = pytest.mark.skipif(not DEEP, reason="everyday, test_console_walk.py is enough")

PICTURES = Path(os.environ.get("HANDRAIL_PICTURES") or Path(__file__).parents[2] / "build" / "console")
"""The folder that a deep run fills."""
_CART = '"""The cart of a shop."""\n\n\ndef total(prices):\n    return round(sum(prices))\n'
_PRICES = "#!/bin/sh\nrm -f prices.old\nprintf 'tea 199\\ncake 250\\n' >prices.txt\necho '2 prices written'\n"
SETTINGS = "[server]\ndirect_calls = true\n"
SCRIPTS = {
    "shop": [
        {"text": "I look at the cart first.", "calls": [["read", {"path": "cart.py"}]]},
        {
            "text": "`round()` rounds half to **even**. I mend that:",
            "calls": [
                ["edit", {"path": "cart.py", "oldText": "round(sum(prices))", "newText": "int(sum(prices) + 0.5)"}]
            ],
        },
        {"text": "Now the price list.", "calls": [["exec", {"command": "./prices.sh"}]]},
        {"text": "The total rounds half up now, and `prices.txt` is new."},
    ],
}
PAGES = ("tasks", "inbox", "tools/edit", "changes", "audit", "policy", "processes", "settings")


@pytest.fixture
def shop(console: Console) -> str:
    """A task that waits for the approval of a command, after an edit."""
    (console.workspace / "cart.py").write_text(_CART)
    (console.workspace / "prices.txt").unlink(missing_ok=True)
    (console.workspace / "prices.old").write_text("tea 189\n")
    (console.workspace / "prices.sh").write_text(_PRICES)
    (console.workspace / "prices.sh").chmod(0o755)
    task = console.start_task("shop", "Make the checkout total round half up")
    page = console.window(f"/tasks/{task}")
    answer(page, "^Approve$")
    expect(page.locator(".drawer")).to_contain_text("prices.txt")
    page.context.close()
    return task


def _take_picture(page: Page, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png")


def _scan(page: Page) -> list[str]:
    """The serious findings of axe."""
    page.evaluate(_read_axe())
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
        for node in one["nodes"]
    ]


def _read_axe() -> str:
    return (oracles.installed(oracles.AXE).modules / "axe-core" / "axe.min.js").read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(console: Console, shop: str, scheme: Any) -> None:
    page = console.window(f"/tasks/{shop}", color_scheme=scheme, viewport={"width": 1280, "height": 800})
    drawer(page)
    found = {}
    _take_picture(page, f"task-{scheme}")
    found["task"] = _scan(page)
    for name in PAGES:
        page.goto(f"{console.server.address}/{name}")
        page.get_by_role("heading", level=1).wait_for()
        page.wait_for_load_state("networkidle")
        _take_picture(page, f"{name.replace('/', '-')}-{scheme}")
        found[name] = _scan(page)
    page.goto(f"{console.server.address}/inbox")
    page.locator("table.rows .row-link").first.click()
    drawer(page)
    _take_picture(page, f"request-{scheme}")
    found["request"] = _scan(page)
    answered = console.window(f"/tasks/{shop}")
    answer(answered, "^(Keep|Approve)$")
    for name in ("replay", "trace"):
        page.goto(f"{console.server.address}/tasks/{shop}/{name}")
        page.get_by_role("heading", level=1).wait_for()
        page.wait_for_load_state("networkidle")
        _take_picture(page, f"{name}-{scheme}")
        found[name] = _scan(page)
    assert {name: problems for name, problems in found.items() if problems} == {}, json.dumps(found, indent=1)


def test_dark_and_light_follow_the_system(console: Console, shop: str) -> None:
    def measure(scheme: Any) -> int:
        page = console.window(f"/tasks/{shop}", color_scheme=scheme)
        drawer(page)
        colour = page.locator(".drawer").evaluate("element => getComputedStyle(element).backgroundColor")
        return sum(int(part) for part in re.findall(r"\d+", colour)[:3])

    assert measure("dark") < 200
    assert measure("light") > 600


def test_on_a_phone_a_person_can_answer(console: Console, shop: str) -> None:
    page = console.window(f"/tasks/{shop}", viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    drawer(page)
    _take_picture(page, "task-phone")
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(overflow) <= 0
    keep = page.locator(".drawer").get_by_role("button", name=re.compile("^(Keep|Approve)$"))
    box = keep.bounding_box()
    assert box is not None
    assert box["height"] >= 24
    keep.tap()
    expect_end(page)
    for name in PAGES:
        page.goto(f"{console.server.address}/{name}")
        page.get_by_role("heading", level=1).wait_for()
        page.wait_for_load_state("networkidle")
        _take_picture(page, f"{name.replace('/', '-')}-phone")
        assert page.evaluate(overflow) <= 0, name


def test_forced_colours_leave_every_answer_visible(console: Console, shop: str) -> None:
    page = console.window(f"/tasks/{shop}", forced_colors="active")
    for button in drawer(page).locator(".drawer-buttons button").all():
        expect(button).to_be_visible()
    _take_picture(page, "task-forced-colours")
