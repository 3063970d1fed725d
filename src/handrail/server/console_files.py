"""The files of the web console."""

import os

from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.staticfiles import StaticFiles

from handrail.mcp.http.guard import Receive, Scope, Send

FOLDER = os.path.join(os.path.dirname(__file__), "console")
_PAGE = "index.html"
PAGES = frozenset(("tasks", "inbox", "tools", "changes", "audit", "policy", "processes", "settings"))
"""The first parts of the console's own addresses. `web/src/pages/index.ts` has the same."""
_IMMUTABLE = "public, max-age=31536000, immutable"
_NOT_BUILT = """The console is not built. The HTTP API works without it. Build it once:

scripts/web
"""


class ConsoleFiles(StaticFiles):
    """The build folder. Addresses of the console itself get its page."""

    def __init__(self, folder: str | None = None) -> None:
        folder = folder or FOLDER
        super().__init__(directory=folder, check_dir=False)
        self._page = os.path.join(folder, _PAGE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Overrides Starlette, which would fail without the folder."""
        if os.path.isfile(self._page):
            await super().__call__(scope, receive, send)
        elif self.get_path(scope) in {".", _PAGE}:
            await PlainTextResponse(_NOT_BUILT)(scope, receive, send)
        else:
            raise HTTPException(404)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Overrides Starlette."""
        if "\0" in path:
            raise HTTPException(404)
        is_page = path == "." or path.split("/", 1)[0] in PAGES
        response = await super().get_response(_PAGE if is_page else path, scope)
        response.headers["cache-control"] = _IMMUTABLE if path.startswith("assets/") else "no-cache"
        return response
