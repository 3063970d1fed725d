"""mcp: the tools for another program's agent."""

import os
from argparse import Namespace
from contextlib import ExitStack
from typing import TYPE_CHECKING

from handrail.cli.exits import INTERRUPTED, OK, CommandFailed
from handrail.cli.files import open_null
from handrail.cli.output import print_note, warn
from handrail.cli.place import resolve_workspace
from handrail.cli.preferences import find_project_folder, load_settings
from handrail.protocol.errors import HandrailError, UsageError
from handrail.settings import load

if TYPE_CHECKING:
    from msgspec import Raw

    from handrail.api import Handrail
    from handrail.mcp.protocol import Caller


def run(options: Namespace) -> int:
    """Serves until the client goes; or tells how a client is told of it."""
    if options.config:
        from handrail.cli.mcp_config import run as tell  # noqa: PLC0415  once for each client

        return tell(options)
    if options.write:
        raise CommandFailed(
            "--write goes with --config CLIENT: it writes what tells a client of us. Nothing was written."
        )
    if options.http:
        from handrail.cli.mcp_http import run as serve_http  # noqa: PLC0415  heavy

        return serve_http(options)
    return _serve(options)


def _serve(options: Namespace) -> int:
    from handrail.mcp.stdio.server import serve  # noqa: PLC0415  the others need none of it

    source, sink = _streams()
    if os.isatty(source):
        print_note(
            "handrail mcp is started by a client, such as Claude Code or Zed, which talks to it here; Ctrl-C ends it."
            "\nTo tell a client of it: handrail mcp --config CLIENT (handrail mcp --help lists them)."
        )
    with ExitStack() as held:
        signalled = serve(
            lambda caller: open_client_session(options, caller, held),
            lambda: _ahead(options),
            source,
            sink,
            warn,
            INTERRUPTED,
        )
    return INTERRUPTED if signalled else OK


def _streams() -> tuple[int, int]:
    from handrail.mcp.stdio.streams import take_streams  # noqa: PLC0415  as above

    try:
        for number in (0, 1):
            os.fstat(number)  # else what is opened next would be one of them
        with open_null() as empty:
            return take_streams(empty)
    except OSError:
        raise CommandFailed("mcp speaks over standard input and output, and one of them is closed") from None


def _ahead(options: Namespace) -> "dict[str, Raw] | None":
    """What the session will list, as far as that is known. What is wrong is told when it is opened."""
    from handrail.mcp.sessions import find_default_tools  # noqa: PLC0415  as above

    workspace = find_project_folder(options)
    if workspace is None or not os.path.isdir(workspace):
        return None
    try:
        return find_default_tools(load(os.environ, {"mode": options.mode}, workspace).settings)
    except HandrailError:
        return None


def open_client_session(options: Namespace, caller: "Caller", held: ExitStack) -> "Handrail":
    """The session that a client works in. What is wrong with the settings is told to whoever asked for it."""
    from handrail.api import Handrail  # noqa: PLC0415  heavy, and a client waits for what is loaded before

    try:
        workspace = resolve_workspace(options)
    except CommandFailed as stop:
        raise UsageError(str(stop)) from None
    loaded = load_settings(options, options.mode, workspace)
    session = options.session or _claimed(workspace, caller, held)
    try:
        return Handrail(workspace, session=session, settings=loaded, on_permission=lambda _: None)
    except BaseException:
        held.close()  # the next request tries again, and may have the name then
        raise


def _claimed(workspace: str, caller: "Caller", held: ExitStack) -> str:
    from handrail.cli.sessions import open_state_folder  # noqa: PLC0415  who names one needs none
    from handrail.mcp.sessions import build_session_name  # noqa: PLC0415

    session, lease = open_state_folder().claim_session(os.path.realpath(workspace), build_session_name(caller))
    held.callback(lease.release)
    return session
