"""Exchanges a token for a cookie, which scripts of the page cannot read."""

from urllib.parse import quote

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from handrail.protocol.wire import encode
from handrail.server.access import TokenBook
from handrail.server.dispatch import decode_body, read_body
from handrail.server.options import ApiFailure
from handrail.server.wire import Login

_MAX_BODY_BYTES = 10_000
_BODY_SECONDS = 5.0


class CookieLogin:
    """`/api/login` and `/api/logout`. The cookie is the token, so it ends with the token."""

    def __init__(self, tokens: TokenBook, cookie: str) -> None:
        """`cookie`: its name."""
        self._tokens = tokens
        self._cookie = cookie

    async def log_in(self, http: HttpRequest) -> Response:
        body = await read_body(http, _MAX_BODY_BYTES, _BODY_SECONDS)
        login: Login = decode_body(http, body, Login)
        caller = self._tokens.find_caller(login.token)
        if caller is None:
            raise ApiFailure(401, "UNAUTHORIZED", "This token does not count.")
        is_secure = http.url.scheme == "https" or http.headers.get("origin", "").startswith("https:")
        response = Response(encode(caller), media_type="application/json")
        response.headers["set-cookie"] = self._build_cookie(login.token, is_secure=is_secure)
        return response

    async def log_out(self, _http: HttpRequest) -> Response:
        return Response(status_code=204, headers={"set-cookie": f"{self._build_cookie('')}; Max-Age=0"})

    def _build_cookie(self, token: str, *, is_secure: bool = False) -> str:
        return f"{self._cookie}={quote(token)}; Path=/; HttpOnly; SameSite=Strict{'; Secure' if is_secure else ''}"
