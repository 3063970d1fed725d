"""The files of the web console."""

import os
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles

FOLDER = os.path.join(os.path.dirname(__file__), "console")
_IMMUTABLE = "public, max-age=31536000, immutable"
_NOT_BUILT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>handrail</title>
<h1>The console is not built</h1>
<p>This checkout has no files of the web console. Build them once, then load this page again:</p>
<pre>cd web
npm ci
npm run build</pre>
<p>The HTTP API works without them.</p>
</html>
"""


class ConsoleFiles(StaticFiles):
    """The build folder. Addresses of the console itself get its page."""

    def __init__(self, folder: str = FOLDER) -> None:
        super().__init__(directory=folder, check_dir=False)
        self._folder = folder

    async def get_response(self, path: str, scope: Any) -> Response:
        """Overrides Starlette."""
        if not os.path.isfile(os.path.join(self._folder, "index.html")):
            if path in {".", "index.html"} and scope["method"] in {"GET", "HEAD"}:
                return HTMLResponse(_NOT_BUILT)
            raise HTTPException(404)
        is_page = "." not in os.path.basename(path) or path == "."
        response = await super().get_response("index.html" if is_page else path, scope)
        response.headers["cache-control"] = _IMMUTABLE if path.startswith("assets/") else "no-cache"
        return response
