"""`handrail mcp`: an MCP server."""

import os
from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING

from handrail.cli.context import add_dialect_option, find_project_folder, load_settings, resolve_workspace
from handrail.cli.exits import FAILED, INTERRUPTED, OK, CommandFailed
from handrail.cli.files import open_null
from handrail.cli.output import print_note, warn
from handrail.cli.parser import Command, add_mode_option, add_workspace_option
from handrail.protocol.errors import HandrailError, UsageError, build_install_command
from handrail.settings import load
from handrail.settings.paths import TOOLS_FOLDER

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from msgspec import Raw

    from handrail.api import Handrail
    from handrail.mcp.http.guard import Address
    from handrail.mcp.protocol import Caller
    from handrail.mcp.sessions import SessionPool

_TOKEN = "HANDRAIL_TOKEN"  # noqa: S105  the name of the variable
_MIN_TOKEN_CHARS = 16
_CLIENTS = "claude-code, cursor, vscode, zed, codex, opencode"


def run(options: SimpleNamespace) -> int:
    """Serves until the client closes, or sets up a client with --config."""
    if options.config:
        from handrail.cli.commands.mcp_config import configure_client  # noqa: PLC0415  once for each client

        return configure_client(options)
    if options.write:
        problem = "--write needs --config CLIENT. Nothing was written."
        raise CommandFailed(problem, then="handrail mcp --config claude-code --write")
    return _serve_http(options) if options.http else _serve_stdio(options)


def open_client_session(options: SimpleNamespace, caller: "Caller", held: ExitStack) -> "Handrail":
    """The session of a client. `held` releases its name. UsageError if the settings or the workspace cannot be used."""
    from handrail.api import Handrail  # noqa: PLC0415  a client waits for everything that is loaded before

    try:
        workspace = resolve_workspace(options, quiet=True)
    except CommandFailed as stop:
        raise UsageError(str(stop)) from None
    loaded = load_settings(options, options.mode, workspace, flags={"dialect": options.dialect})
    session = options.session or _claim_session(workspace, caller, held)
    try:
        return Handrail(workspace, session=session, settings=loaded, on_permission=lambda _: None)
    except BaseException:
        held.close()  # the next request may claim the name again
        raise


def _claim_session(workspace: str, caller: "Caller", held: ExitStack) -> str:
    from handrail.cli.context import open_state_folder  # noqa: PLC0415  only without --session
    from handrail.mcp.sessions import build_session_name  # noqa: PLC0415

    session, lease = open_state_folder().claim_session(os.path.realpath(workspace), build_session_name(caller))
    held.callback(lease.release)
    return session


# stdin and stdout


def _serve_stdio(options: SimpleNamespace) -> int:
    from handrail.mcp.stdio.server import serve  # noqa: PLC0415  --config does not need it

    source, sink = _take_streams()
    if os.isatty(source):
        print_note(
            "A client such as Claude Code starts handrail mcp and talks to it here. Ctrl-C ends it."
            "\nTo add it to a client: handrail mcp --config CLIENT (handrail mcp --help lists them)."
        )
    with ExitStack() as held:
        signalled = serve(
            lambda caller: open_client_session(options, caller, held),
            lambda: _list_default_tools(options),
            source,
            sink,
            warn,
            INTERRUPTED,
        )
    return INTERRUPTED if signalled else OK


def _take_streams() -> tuple[int, int]:
    from handrail.mcp.stdio.streams import take_streams  # noqa: PLC0415  as above

    try:
        for number in (0, 1):
            os.fstat(number)  # otherwise the next opened file would get this number
        with open_null() as empty:
            return take_streams(empty)
    except OSError:
        raise CommandFailed("stdin or stdout is closed, and the server needs both. Nothing was started.") from None


def _list_default_tools(options: SimpleNamespace) -> "dict[str, Raw] | None":
    """The tools that the session will list, if that is known before it opens. Its opening reports errors."""
    from handrail.mcp.sessions import find_default_tools  # noqa: PLC0415  as above

    workspace = find_project_folder(options)
    if workspace is None or not os.path.isdir(workspace) or os.path.lexists(os.path.join(workspace, TOOLS_FOLDER)):
        return None
    try:
        return find_default_tools(
            load(os.environ, {"mode": options.mode, "dialect": options.dialect}, workspace).settings
        )
    except HandrailError:
        return None


# HTTP


def _serve_http(options: SimpleNamespace) -> int:
    """Serves until a signal ends it. Clients of one name share a session, and all clients share a named one."""
    from handrail.mcp.http.guard import Address, parse_address  # noqa: PLC0415  few serve HTTP

    address = parse_address(options.http)
    given = take_token()
    try:
        from handrail.mcp.http.application import serve  # noqa: PLC0415  an optional dependency
    except ImportError as error:
        raise build_missing_error("MCP over HTTP", "mcp", error) from None
    options.workspace = resolve_workspace(options, quiet=True)
    if not os.path.isdir(options.workspace):
        raise CommandFailed(f"the workspace {options.workspace} is not a folder. Nothing was started.")
    flags = {"dialect": options.dialect}
    load_settings(options, options.mode, options.workspace, flags=flags)  # prints remarks once, and not for each client
    options.quiet = True
    listening = address.listen()
    token = given or _make_token()
    _print_address(Address(*listening.getsockname()[:2]), None if given else token)
    with ExitStack() as held:
        serve(listening, token, build_session_pool(options, held), warn, INTERRUPTED)
    return OK


def build_missing_error(what: str, extra: str, error: ImportError) -> CommandFailed:
    reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
    problem = f"{what} is not installed ({reason}). Nothing was started."
    return CommandFailed(problem, then=build_install_command(extra))


def build_session_pool(options: SimpleNamespace, held: ExitStack) -> "SessionPool":
    """The sessions of clients over HTTP. `held` releases their names."""
    from handrail.mcp.sessions import SessionPool, build_session_name  # noqa: PLC0415  few serve HTTP

    def open_session(caller: "Caller") -> "Handrail":
        own = ExitStack()
        rail = open_client_session(options, caller, own)
        held.push(own)
        return rail

    return SessionPool(open_session, lambda caller: options.session or build_session_name(caller))


def take_token() -> str | None:
    """The token of the environment, if there is one. It is removed from there, so that no other program gets it."""
    given = os.environ.pop(_TOKEN, "")
    if not given:
        return None
    if len(given) < _MIN_TOKEN_CHARS or not given.isascii() or not given.isprintable() or " " in given:
        raise CommandFailed(
            f"{_TOKEN} needs at least {_MIN_TOKEN_CHARS} visible ASCII characters. Nothing was started.",
            then=f"export {_TOKEN}=$(openssl rand -hex 32)",
        )
    return given


def _make_token() -> str:
    import secrets  # noqa: PLC0415  it loads OpenSSL

    return secrets.token_urlsafe(32)


def _print_address(address: "Address", token: str | None) -> None:
    """Prints a token only if it is random, and only here."""
    from handrail.mcp.http.guard import PATH  # noqa: PLC0415  few serve HTTP

    warn(f"handrail: MCP over HTTP at http://{address.name}{PATH}")
    if token is None:
        warn(f"handrail: clients send the header  Authorization: Bearer (the value of {_TOKEN})")
    else:
        warn(f"handrail: clients send the header  Authorization: Bearer {token}")
        warn(f"handrail: each start makes a new token, unless {_TOKEN} is set")


def _parse_text(text: str) -> str:
    from handrail.cli.usage import parse_nonempty_text  # noqa: PLC0415  a client waits while it loads argparse

    return parse_nonempty_text(text)


def _add_arguments(parser: "ArgumentParser") -> None:
    add_mode_option(parser)
    add_dialect_option(parser)
    add_workspace_option(parser)
    parser.add_argument(
        "--session",
        metavar="ID",
        type=_parse_text,
        help="the session by this name (mcp- and the client's name)",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--http", metavar="HOST:PORT", type=_parse_text, help="over HTTP instead, on this loopback address"
    )
    how.add_argument(
        "--config",
        metavar="CLIENT",
        type=_parse_text,
        help=f"show the settings for a client as a diff: {_CLIENTS}",
    )
    parser.add_argument("--write", action="store_true", help="with --config: write it")
    parser.set_defaults(json=False, quiet=False)


COMMANDS = {
    "mcp": Command(
        run,
        _add_arguments,
        ("handrail mcp --config claude-code", "handrail mcp --config claude-code --write"),
        {FAILED: "with --config: paste the printed text by hand"},
    ),
}
