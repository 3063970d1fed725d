"""mcp: the tools for another program's agent."""

import os
from argparse import Namespace

from handrail.cli.exits import OK
from handrail.cli.place import workspace_of
from handrail.cli.preferences import loaded_for
from handrail.rail import Handrail


def run(options: Namespace) -> int:
    """Serves until the client goes; or tells how a client is told of it."""
    if options.config:
        from handrail.cli.mcp_config import run as tell  # noqa: PLC0415  once for each client

        return tell(options)
    if options.http:
        from handrail.cli.mcp_http import run as serve_http  # noqa: PLC0415  heavy

        return serve_http(options)
    from handrail.mcp.stdio.server import serve  # noqa: PLC0415  the others need none of it

    workspace = workspace_of(options)
    loaded = loaded_for(options, options.mode, workspace)
    with Handrail(workspace, session=options.session or "mcp", settings=loaded, on_permission=lambda _: None) as rail:
        serve(rail, 0, os.dup(1))
    return OK
