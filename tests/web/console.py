"""A server with scripted models, and windows of Chromium at its console."""

import json
import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect
from tests.server.serve_process import ServeProcess

DEEP = os.environ.get("HANDRAIL_DEEP", "") not in {"", "0"}
PATIENCE = 12_000
"""In milliseconds, for what the server does."""
GUARD = 500
"""A drawer ignores answers in its first moments, so a person has to wait that long."""
_START = "import sys; from handrail.server import console_files; console_files.FOLDER = sys.argv.pop(1);"
_START += "from handrail.cli.main import main; main()"
_NETWORK = ("Failed to load resource", "WebSocket connection to")
Script = Sequence[Mapping[str, Any]]
"""The replies of a model, as `scripted:FILE` takes them."""

expect.set_options(timeout=PATIENCE)


class Console:
    """The server, its workspace, its windows."""

    def __init__(
        self, folder: Path, built: Path, browser: Browser, scripts: Mapping[str, Script], settings: str = ""
    ) -> None:
        self._folder, self._browser, self._settings = folder, browser, settings
        self._program = ("-c", _START, str(built))
        self.models = {name: f"scripted:{folder}/{name}.json" for name in scripts}
        for name, script in scripts.items():
            (folder / f"{name}.json").write_text(json.dumps(script))
        self._contexts: list[BrowserContext] = []
        self.problems: list[str] = []
        """What no window may have: errors of scripts, requests to others, dialogs."""
        self.server = self.start()
        self.workspace = self.server.workspace

    def start(self, port: int = 0) -> ServeProcess:
        options = [word for model in self.models.values() for word in ("--model", model)]
        return ServeProcess(self._folder, *options, settings=self._settings, port=port, program=self._program)

    def restart(self) -> None:
        """Starts the stopped server again, on its port."""
        self.server.__exit__()
        self.server = self.start(self.server.port)

    def close(self) -> None:
        for context in self._contexts:
            context.close()
        self.server.__exit__()

    def window(self, path: str = "/tasks", *, token: str | None = None, **options: Any) -> Page:
        """A browser of somebody who signs in by the address."""
        context = self._browser.new_context(reduced_motion="reduce", **options)
        self._contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        self._watch(page)
        page.goto(f"{self.server.address}{path}#token={token or self.server.token}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        return page

    def _watch(self, page: Page) -> None:
        def see_message(message: ConsoleMessage) -> None:
            if message.type == "error" and not any(sign in message.text for sign in _NETWORK):
                self.problems.append(f"error: {message.text}")

        def see_request(request: Request) -> None:
            if not request.url.startswith((self.server.address, "blob:")):
                self.problems.append(f"request: {request.url}")

        page.on("console", see_message)
        page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))
        page.on("request", see_request)
        page.on("dialog", lambda dialog: (self.problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    def post(self, path: str, body: Any = None) -> Any:
        with self.server.client() as client:
            response = client.post(path, json=body if body is not None else {})
            assert response.is_success, response.text
            return response.json() if response.content else None

    def get(self, path: str) -> Any:
        with self.server.client() as client:
            response = client.get(path)
            assert response.is_success, response.text
            return response.json()

    def start_task(self, script: str, prompt: str = "Work.", mode: str = "ask") -> str:
        """The id of a new task, whose model plays a script."""
        return self.post("/api/tasks", {"prompt": prompt, "model": self.models[script], "mode": mode})["id"]


@contextmanager
def open_console(
    folder: Path, built: Path, browser: Browser, scripts: Mapping[str, Script], settings: str = ""
) -> Generator[Console]:
    console = Console(folder, built, browser, scripts, settings)
    try:
        yield console
    finally:
        console.close()


def drawer(page: Page) -> Any:
    """The docked request, once it takes answers."""
    found = page.locator(".drawer")
    expect(found).to_be_visible()
    page.wait_for_timeout(GUARD)
    return found


def answer(page: Page, name: str) -> None:
    """Presses a button of the docked request as soon as it counts."""
    drawer(page).get_by_role("button", name=re.compile(name)).first.click()


def expect_end(page: Page, text: str = "✓ Done") -> None:
    """The last turn of the conversation has ended."""
    expect(page.get_by_role("article", name="End of the turn").last).to_contain_text(text)
