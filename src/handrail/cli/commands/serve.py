"""`handrail serve`: the HTTP API with the web console."""

import os
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from handrail.cli.browser import open_browser
from handrail.cli.commands.fleet_database import find_database, needs_extra
from handrail.cli.commands.mcp import build_missing_error, build_session_pool, take_token
from handrail.cli.commands.run_setup import build_turn_limits, enable_companion_tools, open_named_model
from handrail.cli.context import (
    add_dialect_option,
    find_server_sources,
    load_settings,
    open_state_folder,
    resolve_project_folder,
    resolve_workspace,
)
from handrail.cli.exits import FAILED, INTERRUPTED, OK, CommandFailed
from handrail.cli.format import format_time
from handrail.cli.output import print_json, print_note, print_out, render_table, warn
from handrail.cli.parser import Command, add_json_option, add_mode_option
from handrail.protocol.decisions import Mode
from handrail.protocol.text import render_value
from handrail.protocol.wire import encode
from handrail.settings import LoadedSettings
from handrail.settings.units import parse_size

if TYPE_CHECKING:
    from handrail import ToolSource
    from handrail.agent.turn import TurnLimits
    from handrail.mcp.http.application import McpEndpoint
    from handrail.mcp.http.guard import Address
    from handrail.models.base import Model
    from handrail.server.access import ServerLimits
    from handrail.server.options import ServerOptions

_LISTEN = "127.0.0.1:7420"
_ROLES = ("viewer", "operator", "admin")


def run(options: SimpleNamespace) -> int:
    """Serves until a signal ends it."""
    try:
        from handrail.server.access import ServerNames  # noqa: PLC0415  an optional dependency
        from handrail.server.application import Entrance, serve  # noqa: PLC0415  as above
        from handrail.server.options import ServerOptions  # noqa: PLC0415  as above
        from handrail.server.runner import TaskRunner  # noqa: PLC0415  as above
    except ImportError as error:
        raise build_missing_error("the HTTP server", "server", error) from None
    from handrail.mcp.http.guard import Address, parse_address  # noqa: PLC0415  few serve HTTP

    options.database = find_database(options)
    address = parse_address(options.listen, "--listen", loopback=False)
    _check_exposure(options, address)
    workspaces = _resolve_workspaces(options)
    here = workspaces[0] if not options.database or os.path.isdir(workspaces[0]) else None
    loaded = load_settings(options, options.mode, here, flags=_build_flags(options))
    options.quiet = True  # the remarks were printed once
    state = open_state_folder()
    tokens, token = state.open_tokens(), take_token()
    is_random = token is None and not tokens.list_tokens()
    if is_random:
        token = tokens.make()
    build_options, open_tasks = _find_node(options.database) if options.database else (ServerOptions, TaskRunner)
    with ExitStack() as held:
        mcp = _build_mcp(options, workspaces[0], held) if options.mcp else None
        listening = address.listen()
        address = Address(*listening.getsockname()[:2])
        entrance = Entrance(
            listening,
            ServerNames.build(address, options.name or (), has_tls=bool(options.tls_cert)),
            token,
            build_limits(loaded),
            (options.tls_cert, options.tls_key) if options.tls_cert else None,
        )
        served = build_options(
            state=state,
            workspaces=workspaces,
            host=CommandServerHost(options),
            note=warn,
            direct_calls=loaded.settings.server.direct_calls,
            dialect=loaded.settings.dialect,
            mode=options.mode,
        )
        url = _build_url(options, address)
        _print_address(options, url, token if is_random else None, has_token=token is not None)
        if options.open:
            held.enter_context(open_browser(f"{url}/#token={token}" if token else url))
        serve(entrance, served, INTERRUPTED, mcp, open_tasks)
    return OK


class CommandServerHost:
    """The options of the command decide for all tasks."""

    def __init__(self, options: SimpleNamespace) -> None:
        self._options = options

    def load_settings(self, workspace: str, mode: Mode | None = None) -> LoadedSettings:
        loaded = load_settings(self._options, mode, workspace, flags=_build_flags(self._options))
        return enable_companion_tools(loaded, workspace)

    def get_limits(self, loaded: LoadedSettings) -> "TurnLimits":
        return build_turn_limits(loaded)

    def list_models(self, loaded: LoadedSettings) -> tuple[str, ...]:
        default = loaded.settings.model
        return tuple(dict.fromkeys(self._options.model or ([default] if default else [])))

    def open_model(self, loaded: LoadedSettings, name: str | None = None) -> "Model":
        return open_named_model(name or next(iter(self.list_models(loaded)), None), loaded)

    def open_sources(self, loaded: LoadedSettings, workspace: str) -> "tuple[ToolSource, ...]":
        return find_server_sources(self._options, loaded, workspace)


def _build_flags(options: SimpleNamespace) -> dict[str, Any]:
    return {"dialect": options.dialect, "model": options.model[0] if options.model else None}


def build_limits(loaded: LoadedSettings) -> "ServerLimits":
    from handrail.server.access import ServerLimits  # noqa: PLC0415  an optional dependency

    settings = loaded.settings.server
    return ServerLimits(parse_size(settings.body), settings.requests, settings.websockets)


def _find_node(url: str) -> "tuple[type[ServerOptions], Callable[..., Any]]":
    """The options of a node of a fleet, and what opens its tasks. StoreError if the database cannot be used."""
    with needs_extra("fleet"):
        from handrail.server.fleet_tasks import FleetTasks, NodeOptions  # noqa: PLC0415  an optional dependency
    FleetTasks.check(url)
    return NodeOptions, partial(FleetTasks, url=url)


def _resolve_workspaces(options: SimpleNamespace) -> tuple[str, ...]:
    """The real paths of the folders that tasks may work in. Those of a fleet need not be here."""
    if options.database and options.workspace:
        if any(map(_has_secret, options.workspace)):
            raise CommandFailed("--workspace has a password, which every viewer would see. Use git's credentials.")
        # One name for a folder: its sessions run one after the other.
        return tuple(dict.fromkeys(os.path.realpath(one) if os.path.isdir(one) else one for one in options.workspace))
    if options.database:
        problem = "--database needs --workspace for each folder or repository that tasks may work in."
        raise CommandFailed(f"{problem} Nothing was started.", then="handrail serve --workspace git+https://…")
    named: list[str] = options.workspace or [resolve_workspace(SimpleNamespace(workspace=None))]
    for folder in named:
        resolve_project_folder(SimpleNamespace(workspace=folder))
    return tuple(dict.fromkeys(os.path.realpath(folder) for folder in named))


def _has_secret(workspace: str) -> bool:
    """Whether the URL of a repository has a password, or a user of HTTP, which is often a token."""
    url = urlsplit(workspace)
    return bool(url.password or (url.username and url.scheme.startswith("git+http")))


def _check_exposure(options: SimpleNamespace, address: "Address") -> None:
    """CommandFailed: other machines could read what is sent, or the options do not fit together."""
    if bool(options.tls_cert) != bool(options.tls_key):
        raise CommandFailed("--tls-cert and --tls-key need each other. Nothing was started.")
    if options.database and options.mcp:
        raise CommandFailed("--mcp works on files of this machine, so it does not go with --database.")
    if options.tls_cert:
        _check_certificate(options.tls_cert, options.tls_key)
    elif not address.is_loopback and not options.allow_plain_http:
        problem = (
            f"{address.name} is not a loopback address, and plain HTTP shows the token to the whole network. "
            "With the token, anyone can change files and run commands here. Nothing was started."
        )
        raise CommandFailed(problem, then=f"handrail serve --listen {address.name} --tls-cert FILE --tls-key FILE")
    if address.host in {"0.0.0.0", "::"} and not options.name:  # noqa: S104  it is compared, not bound
        problem = f"--listen {address.name} needs --name HOST for each name that clients use. Nothing was started."
        raise CommandFailed(problem)


def _check_certificate(certificate: str, key: str) -> None:
    import ssl  # noqa: PLC0415  few use TLS

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:
        problem = f"the certificate {certificate} and its key {key} cannot be used: {error}. Nothing was started."
        raise CommandFailed(problem) from None


def _build_mcp(options: SimpleNamespace, workspace: str, held: ExitStack) -> "McpEndpoint":
    try:
        from handrail.mcp.http.application import McpEndpoint  # noqa: PLC0415  an optional dependency
    except ImportError as error:
        raise build_missing_error("MCP over HTTP", "mcp", error) from None
    client = SimpleNamespace(**{**vars(options), "workspace": workspace, "session": None})
    return McpEndpoint(build_session_pool(client, held), warn)


def _build_url(options: SimpleNamespace, address: "Address") -> str:
    scheme, name = ("https" if options.tls_cert else "http"), (options.name or [address.name])[0]
    host = name if ":" in name.rpartition("]")[2] else f"{name}:{address.port}"
    return f"{scheme}://{host}"


def _print_address(options: SimpleNamespace, url: str, token: str | None, *, has_token: bool) -> None:
    """Prints a token only if it is random, and only here."""
    print_out(f"{url}/{f'#token={token}' if token else ''}\n")
    if token:
        warn("handrail: open this address in a browser. Programs send the header  Authorization: Bearer TOKEN")
        warn("handrail: each start makes a new token, unless HANDRAIL_TOKEN is set or handrail serve tokens has any")
    else:
        which = "HANDRAIL_TOKEN, or a named token" if has_token else "a named token (handrail serve tokens)"
        warn(f"handrail: clients need {which}")
    if options.mcp:
        warn(f"handrail: MCP over HTTP at {url}/mcp")


# Named tokens


def run_tokens(options: SimpleNamespace) -> int:
    """Lists the named tokens, adds one, or removes one. A running server obeys at once."""
    if options.action is None:
        return _list_tokens(options)
    if options.name is None:
        raise CommandFailed("the name of the token is missing. Nothing was done.")
    return _add_token(options) if options.action == "add" else _remove_token(options.name)


def _list_tokens(options: SimpleNamespace) -> int:
    tokens = open_state_folder().open_tokens().list_tokens()
    if options.json:
        listed = [{"name": one.name, "role": one.role, "created": one.created} for one in tokens]
        print_json(encode({"schema": "handrail.tokens/1", "tokens": listed}))
    elif tokens:
        rows = [(one.name, one.role, format_time(one.created)) for one in tokens]
        print_out(render_table([("token", "role", "created"), *rows]))
    else:
        print_note("There are no named tokens. To add one: handrail serve tokens add NAME --role operator")
    return OK


def _add_token(options: SimpleNamespace) -> int:
    role = options.role or "viewer"
    token = open_state_folder().open_tokens().add(options.name, role)
    if options.json:
        print_json(encode({"schema": "handrail.tokens/1", "name": options.name, "role": role, "token": token}))
        return OK
    print_out(f"{token}\n")
    print_note(f"This is the token of {options.name} ({role}). It is shown only now, and stored nowhere.")
    return OK


def _remove_token(name: str) -> int:
    if not open_state_folder().open_tokens().remove(name):
        problem = f"there is no token {render_value(name)}. Nothing was removed."
        raise CommandFailed(problem, FAILED, then="handrail serve tokens")
    print_note(f"Removed. Servers refuse the token {name} from now on.")
    return OK


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--workspace", metavar="DIR", action="append", help="a folder for tasks; repeat for several")
    parser.add_argument("--database", metavar="URL", help="serve the sessions of a fleet: postgresql://…")
    parser.add_argument("--listen", metavar="HOST:PORT", default=_LISTEN, help=f"the address ({_LISTEN})")
    parser.add_argument("--name", metavar="HOST", action="append", help="a name that clients use; repeat for several")
    parser.add_argument("--tls-cert", metavar="FILE", help="the certificate for HTTPS")
    parser.add_argument("--tls-key", metavar="FILE", help="the key of the certificate")
    parser.add_argument("--allow-plain-http", action="store_true", help="allow other machines without TLS")
    parser.add_argument("--open", action="store_true", help="open the console in a browser")
    parser.add_argument("--mcp", action="store_true", help="serve MCP at /mcp too")
    parser.add_argument("--model", metavar="NAME", action="append", help="a model to choose; the first is the default")
    add_mode_option(parser)
    add_dialect_option(parser)
    parser.set_defaults(json=False)


def _add_token_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("add", "remove"), help="add or remove a token")
    parser.add_argument("name", nargs="?", metavar="NAME", help="its name")
    parser.add_argument("--role", choices=_ROLES, help="what its holder may do (viewer)")
    add_json_option(parser)


COMMANDS = {
    "serve": Command(
        run,
        _add_arguments,
        (
            "handrail serve --workspace shop --open",
            "handrail serve --database postgresql://… --workspace git+https://…",
        ),
    ),
    "serve tokens": Command(
        run_tokens,
        _add_token_arguments,
        ("handrail serve tokens", "handrail serve tokens add ci --role operator"),
        {FAILED: "there is no such token"},
    ),
}
