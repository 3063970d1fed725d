"""python tests/web/take_pictures.py FOLDER: takes the pictures of docs/how-to/use-the-console.md from the demo."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

GUARD = 500


def main(folder: Path) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "handrail", "demo", "--web"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as demo:
        try:
            assert demo.stdout is not None
            with sync_playwright() as playwright:
                arguments = ["--no-sandbox"] if os.getuid() == 0 else []
                path = shutil.which("chromium")
                take_all(
                    playwright.chromium.launch(executable_path=path, args=arguments), demo.stdout.readline(), folder
                )
        finally:
            demo.terminate()


def take_all(browser: Browser, address: str, folder: Path) -> None:
    address = address.strip()
    page = _open(browser, address, 1200, 760)
    _answer(page, "edit")
    expect(page.locator(".drawer")).to_contain_text("prices.txt")
    expect(page.locator(".task-list")).to_contain_text("waiting")
    expect(page.locator(".task-head")).to_contain_text("waiting")
    page.screenshot(path=folder / "console-approval.png")
    phone = _open(browser, address, 390, 760)
    expect(phone.locator(".drawer")).to_contain_text("prices.txt")
    phone.screenshot(path=folder / "console-phone.png")
    _answer(page, "exec")
    expect(page.get_by_role("article", name="End of the turn").last).to_contain_text("Done")
    page.get_by_role("link", name="Changes").first.click()
    page.locator("table.rows .row-link").first.click()
    page.get_by_role("button", name=re.compile("^Undo")).first.click()
    page.locator(".notice .primary").wait_for()
    page.screenshot(path=folder / "console-undo.png")
    page.goto(f"{address.partition('#')[0]}/replay")
    page.get_by_role("button", name=re.compile("^Next|›")).last.click()
    page.screenshot(path=folder / "console-replay.png")
    browser.close()


def _open(browser: Browser, address: str, width: int, height: int) -> Page:
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light", reduced_motion="reduce")
    page.goto(address)
    page.locator(".drawer").wait_for()
    return page


def _answer(page: Page, tool: str) -> None:
    expect(page.locator(".drawer")).to_contain_text(tool)
    page.wait_for_timeout(GUARD)
    page.locator(".drawer").get_by_role("button", name=re.compile("^(Keep|Approve)$")).click()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
