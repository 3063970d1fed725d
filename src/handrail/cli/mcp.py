"""mcp: the tools for another program's agent."""

import os
from argparse import Namespace
from contextlib import ExitStack
from typing import TYPE_CHECKING

from handrail.cli.exits import INTERRUPTED, OK, Stop
from handrail.cli.files import nowhere
from handrail.cli.output import note
from handrail.cli.place import workspace_of
from handrail.cli.preferences import loaded_for
from handrail.protocol.error import UsageError
from handrail.rail import Handrail
from handrail.settings import state_folder

if TYPE_CHECKING:
    from handrail.mcp.caller import Caller


def run(options: Namespace) -> int:
    """Serves until the client goes; or tells how a client is told of it."""
    if options.config:
        from handrail.cli.mcp_config import run as tell  # noqa: PLC0415  once for each client

        return tell(options)
    if options.http:
        from handrail.cli.mcp_http import run as serve_http  # noqa: PLC0415  heavy

        return serve_http(options)
    return _serve(options)


def _serve(options: Namespace) -> int:
    from handrail.mcp.stdio.server import serve, take_streams  # noqa: PLC0415  the others need none of it

    try:
        with nowhere() as empty:
            source, sink = take_streams(empty)
    except OSError:
        raise Stop("mcp speaks over standard input and output, and one of them is closed") from None
    with ExitStack() as held:
        signalled = serve(lambda caller: opened(options, caller, held), source, sink, note, INTERRUPTED)
    return INTERRUPTED if signalled else OK


def opened(options: Namespace, caller: "Caller", held: ExitStack) -> Handrail:
    """The session that a client works in. What is wrong with the settings is told to whoever asked for it."""
    try:
        workspace = workspace_of(options)
    except Stop as stop:
        raise UsageError(str(stop)) from None
    loaded = loaded_for(options, options.mode, workspace)
    session = options.session or _claimed(workspace, caller, held)
    try:
        return Handrail(workspace, session=session, settings=loaded, on_permission=lambda _: None)
    except BaseException:
        held.close()  # the next request tries again, and may have the name then
        raise


def _claimed(workspace: str, caller: "Caller", held: ExitStack) -> str:
    from handrail.mcp.sessions import claim_session, session_name  # noqa: PLC0415  who names one needs none

    session, lease = claim_session(state_folder(os.environ), workspace, session_name(caller))
    held.callback(lease.release)
    return session
