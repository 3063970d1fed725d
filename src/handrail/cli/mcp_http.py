"""mcp --http: the tools for other programs' agents, over HTTP."""

import os
import secrets
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from socket import socket

from handrail.api import Handrail
from handrail.cli.exits import INTERRUPTED, OK, CommandFailed
from handrail.cli.mcp import open_client_session
from handrail.cli.output import warn
from handrail.cli.place import resolve_workspace
from handrail.cli.preferences import load_settings
from handrail.mcp.http.guard import PATH, Address, parse_address
from handrail.mcp.protocol import Caller
from handrail.mcp.sessions import SessionPool, build_session_name
from handrail.protocol.errors import build_install_command

_TOKEN = "HANDRAIL_TOKEN"  # noqa: S105  its name
_MIN_TOKEN_CHARS = 16


def run(options: Namespace) -> int:
    """Serves until a signal ends it."""
    address = parse_address(options.http)
    made_up = not os.environ.get(_TOKEN)
    token = _token()
    serve = _loaded()
    options.workspace = resolve_workspace(options)
    if not os.path.isdir(options.workspace):
        raise CommandFailed(
            f"the workspace {options.workspace} is no folder. Nothing was started. Name one that is there."
        )
    load_settings(options, options.mode, options.workspace)  # what is wrong with the settings is said now
    options.quiet = True  # and not again for each client
    listening = address.listen()
    _tell(Address(*listening.getsockname()[:2]), token if made_up else None)
    with ExitStack() as held:
        rails = SessionPool(lambda caller: _opened(options, caller, held), lambda caller: _name(options, caller))
        serve(listening, token, rails, warn, INTERRUPTED)
    return OK


def _loaded() -> Callable[[socket, str, SessionPool, Callable[[str], None], int], None]:
    """What serves. It is heavy, and not everybody has it."""
    try:
        from handrail.mcp.http.application import serve  # noqa: PLC0415
    except ImportError as error:
        said = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise CommandFailed(
            f"what speaks MCP over HTTP is not installed ({said}). Install it: {build_install_command('mcp')}"
        ) from None
    return serve


def _opened(options: Namespace, caller: Caller, held: ExitStack) -> Handrail:
    """The session of a client, until the server ends."""
    own = ExitStack()
    rail = open_client_session(options, caller, own)
    held.push(own)
    return rail


def _name(options: Namespace, caller: Caller) -> str:
    """Clients of one name share a session; all do, where a session was named."""
    return options.session or build_session_name(caller)


def _token() -> str:
    """What a client has to show: what the environment says, or one that nobody can guess. It is taken out of there:
    nothing that is started or loaded here needs it."""
    given = os.environ.pop(_TOKEN, "")
    if not given:
        return secrets.token_urlsafe(32)
    if len(given) < _MIN_TOKEN_CHARS or not given.isascii() or not given.isprintable() or " " in given:
        raise CommandFailed(
            f"{_TOKEN} is no token: at least {_MIN_TOKEN_CHARS} visible ASCII characters, so that nobody guesses it."
            f" One is made by: openssl rand -hex 32"
        )
    return given


def _tell(address: Address, token: str | None) -> None:
    """The only place where a token is shown, and only one that was made up here."""
    warn(f"handrail: MCP over HTTP at http://{address.name}{PATH}")
    if token is None:
        warn(f"handrail: clients send the header  Authorization: Bearer (what {_TOKEN} is)")
    else:
        warn(f"handrail: clients send the header  Authorization: Bearer {token}")
        warn(f"handrail: the token is another one each time; {_TOKEN} in the environment keeps it")
