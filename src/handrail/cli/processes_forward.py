"""processes forward: a port of a background command, opened on this machine."""

import errno
import socket
from argparse import Namespace
from contextlib import closing

from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.output import print_note, print_out
from handrail.cli.process_places import ProcessEntry, print_refusal, resolve_process
from handrail.process.sessions.ports import MAX_CONNECTIONS, NamespaceConnector, forward_port
from handrail.process.sessions.sessions import ProcessSession
from handrail.protocol.errors import ToolError
from handrail.state import add_notice
from handrail.tools.process import describe_process

_HERE = "127.0.0.1"


def run(options: Namespace) -> int:
    """Carries connections until it has ended, or somebody presses Ctrl-C."""
    place = resolve_process(options)
    try:
        with closing(NamespaceConnector(place.process.folder, options.port)) as inside, _listening(options) as listener:
            _tell(options, place, listener.getsockname()[1])
            forward_port(place.process.folder, inside, listener)
    except ToolError as error:
        return print_refusal(options, error)
    print_note(f"{place.process.id}: {_how_it_ended(place.process)}")
    return OK


def _listening(options: Namespace) -> socket.socket:
    port: int = options.port if options.to is None else options.to
    try:
        return socket.create_server((_HERE, port), backlog=MAX_CONNECTIONS)
    except OSError as error:
        why = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be opened ({error.strerror})"
        raise CommandFailed(
            f"port {port} of this machine {why}. Nothing is forwarded. Any free one: --to 0", FAILED
        ) from None


def _tell(options: Namespace, place: ProcessEntry, port: int) -> None:
    """The person where it is, and the session that it is open."""
    process = place.process
    text = f"A person opened port {options.port} of {process.id} on {_HERE}:{port}."
    add_notice(place.session_folder, text)
    ports = process.record().ports
    if options.port not in ports:
        others = f"; it listens on {', '.join(map(str, ports))}" if ports else ""
        print_note(f"nothing listens on port {options.port} of {process.id} yet{others}")
    print_out(f"http://{_HERE}:{port}/ leads to port {options.port} of {process.id}; Ctrl-C ends it\n")


def _how_it_ended(process: ProcessSession) -> str:
    try:
        return describe_process(process.record())
    except ToolError:
        return "removed"
