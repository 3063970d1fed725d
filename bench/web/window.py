"""python -m bench.web.window PORT: measures the console of a server in Chromium, prints JSON."""

import json
import os
import statistics
import sys

from playwright.sync_api import Page, sync_playwright

from bench.server.followers import request
from bench.server.program import TOKEN
from bench.web import find_chromium

_LOADS = 5
_PATIENCE = 300_000
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
_SCROLL = """
async () => {
  const box = document.querySelector(".items");
  const times = [];
  let step = -90, last = await new Promise(requestAnimationFrame);
  for (let frame = 0; frame < 600; frame++) {
    box.scrollTop += step;
    if (box.scrollTop === 0) step = 90;
    const now = await new Promise(requestAnimationFrame);
    times.push(now - last);
    last = now;
  }
  return times;
}
"""


def main(port: int) -> None:
    task = request(port, "POST", "/api/tasks", {"prompt": "Work."})["id"]
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.getuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=arguments)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(_PATIENCE)
        page.goto(f"http://127.0.0.1:{port}/tasks/{task}#token={TOKEN}")
        page.get_by_role("article", name="End of the turn").wait_for()
        events = request(port, "GET", f"/api/tasks/{task}")["lastSeq"]
        page.reload()
        page.get_by_role("article", name="End of the turn").wait_for()
        times = sorted(page.evaluate(_SCROLL))
        paints = [_measure_paint(page, port) for _ in range(_LOADS)]
        browser.close()
    found = {
        "events": events,
        "paint": statistics.median(paints),
        "mean": statistics.fmean(times),
        "p95": times[int(len(times) * 0.95)],
    }
    print(json.dumps(found))


def _measure_paint(page: Page, port: int) -> float:
    page.goto(f"http://127.0.0.1:{port}/tasks")
    page.get_by_role("heading", level=1).wait_for()
    page.wait_for_function(f"() => ({_PAINT}) !== null")
    return float(page.evaluate(_PAINT))


if __name__ == "__main__":
    main(int(sys.argv[1]))
