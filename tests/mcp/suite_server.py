"""Our servers, with the tools that the conformance suite calls: `suite_server.py http|stdio WORKSPACE`.

Everything is as in `handrail mcp`, but for the tools, which no command line can give.
"""

import os
import sys

from suite_tools import SUITE_TOOLS, Growing, growing_by_call

from handrail import Handrail
from handrail.mcp.protocol import Caller
from handrail.mcp.sessions import build_session_name
from handrail.settings import Settings


def over_http(workspace: str) -> None:
    """Serves any client, and says on stdout at which port."""
    from handrail.mcp.http.application import serve
    from handrail.mcp.http.guard import Address
    from handrail.mcp.sessions import SessionPool

    listening = Address("127.0.0.1", 0).listen()
    print(listening.getsockname()[1], flush=True)
    rails = SessionPool(lambda caller: _opened(workspace, build_session_name(caller)))
    serve(listening, os.environ["HANDRAIL_TOKEN"], rails, _tell, 130)


def over_stdio(workspace: str) -> None:
    """Serves one client."""
    from handrail.mcp.stdio.server import serve
    from handrail.mcp.stdio.streams import take_streams

    source, sink = take_streams(os.open(os.devnull, os.O_RDWR))
    session = f"{build_session_name(Caller())}-{os.getpid()}"
    serve(lambda _: _opened(workspace, session), lambda: None, source, sink, _tell, 1)


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


def _opened(workspace: str, session: str) -> Handrail:
    """A session in which tools ask that say nothing of their effects."""
    source = Growing()
    return Handrail(
        workspace,
        session=session,
        settings=Settings(),
        mode="ask",
        tools=(*SUITE_TOOLS, growing_by_call(source)),
        sources=(source,),
        on_permission=lambda _: None,
    )


if __name__ == "__main__":
    {"http": over_http, "stdio": over_stdio}[sys.argv[1]](sys.argv[2])
