"""Our server, with the tools that the conformance suite calls: `suite_server.py WORKSPACE` (HTTP on a free port).

Everything is as in `handrail mcp`, but for the tools, which no command line can give.
"""

import os
import sys

from suite_tools import SUITE_TOOLS

from handrail import Handrail
from handrail.mcp.caller import Caller
from handrail.settings import Settings


def open_rail(workspace: str, session: str) -> Handrail:
    """A session over the workspace with the suite's tools, in which some of them ask."""
    return Handrail(
        workspace, session=session, settings=Settings(), mode="auto", tools=SUITE_TOOLS, on_permission=lambda _: None
    )


def over_http(workspace: str) -> None:
    """Serves any client, and says where on stdout."""
    from handrail.mcp.http.address import Address
    from handrail.mcp.http.rails import Rails
    from handrail.mcp.http.serving import serve

    def opened(caller: Caller) -> Handrail:
        return open_rail(workspace, caller.name or "mcp")

    listening = Address("127.0.0.1", 0).listen()
    print(listening.getsockname()[1], flush=True)
    serve(listening, os.environ["HANDRAIL_TOKEN"], Rails(opened))


if __name__ == "__main__":
    over_http(sys.argv[1])
