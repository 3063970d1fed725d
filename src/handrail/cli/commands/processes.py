"""handrail processes: the background processes of all sessions."""

import errno
import os
import socket
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Literal

from handrail.cli.context import choose_id, open_state_folder, resolve_workspace
from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.files import silence
from handrail.cli.format import build_error_data, print_refusal
from handrail.cli.output import can_show, print_error, print_json, print_note, print_out, render_table
from handrail.cli.parser import Command, add_place_options, add_workspace_option
from handrail.cli.usage import parse_number
from handrail.processes import StoredProcess, list_processes
from handrail.protocol.errors import ToolError
from handrail.protocol.records import ProcessRecord, shorten_ids
from handrail.protocol.text import to_one_line, truncate
from handrail.protocol.wire import encode

_SCHEMA = "handrail.processes/1"
_LOOPBACK = "127.0.0.1"


def run(options: SimpleNamespace) -> int:
    found = _list_processes(options, everywhere=options.all, session=options.session)
    records = [record for _, record in found]
    if options.json:
        print_json(encode({"schema": _SCHEMA, "processes": records}))
    elif found:
        print_out(_render_processes(found, workspaces=options.all))
        if any(record.state == "running" for record in records):
            print_note("undo does not cover changes by background processes; to stop one: handrail processes stop ID")
    else:
        print_note("nothing is running" if options.all else "nothing is running here; every workspace: --all")
    return OK


def run_log(options: SimpleNamespace) -> int:
    """Prints the log. With --follow, until the process has ended."""
    if options.raw and sys.stdout is not None and sys.stdout.isatty():
        raise CommandFailed("--raw output can control this terminal. Redirect it to a file or a pipe.")
    process, record = _find_process(options)
    if record.dropped:
        print_note(record.describe_dropped())
    if options.raw:
        _print_raw(process.read_log(follow=options.follow))
    else:
        for text in process.read_clean_log(follow=options.follow):
            print_out(text)
    print_note(f"{process.id}: {_describe(process)}")
    return OK


def run_write(options: SimpleNamespace) -> int:
    """Writes a line, or stdin, to a process."""
    if options.text is None and not options.eof:
        raise CommandFailed("the text is missing: TEXT, - for stdin, or --eof. Nothing was written.")
    if options.text == "-":
        data = sys.stdin.buffer.read() if sys.stdin is not None else b""
    else:
        data = b"" if options.text is None else f"{options.text}\n".encode("utf-8", "surrogateescape")
    process, _ = _find_process(options)
    deed = f"wrote {len(data):,} bytes{' and closed the input' if options.eof else ''} to"
    return _act(options, process, deed, lambda: process.write(data, deed, eof=options.eof))


def run_remove(options: SimpleNamespace) -> int:
    process, _ = _find_process(options)
    return _act(options, process, "removed", process.remove)


def run_stop(options: SimpleNamespace) -> int:
    """Ends one process, all of a session, or all."""
    if (options.id is not None) + (options.session is not None) + options.all != 1:
        raise CommandFailed(
            "the process session is missing: an id, --session ID, or --all (every workspace). Nothing was stopped."
        )
    if options.id is None:
        found = _list_processes(options, everywhere=options.all, session=options.session)
        return _stop_all(options, [process for process, _ in found if not process.has_ended()])
    process, _ = _find_process(options)
    if not process.has_ended():
        return _act(options, process, "stopped", process.stop)
    if options.json:
        print_json(encode({"schema": _SCHEMA, "process": process.record()}))
    else:
        print_note(f"{process.id} had ended before: {_describe(process)}")
    return OK


def run_forward(options: SimpleNamespace) -> int:
    """Forwards a port of this machine to a process until it has ended, or until Ctrl-C."""
    process, record = _find_process(options)
    try:
        with process.open_port(options.port) as forward, _listen(options) as listener:
            own = listener.getsockname()[1]
            process.add_notice(f"A person opened port {options.port} of {process.id} on {_LOOPBACK}:{own}.")
            if options.port not in record.ports:
                others = f"; it listens on {', '.join(map(str, record.ports))}" if record.ports else ""
                print_note(f"nothing listens on port {options.port} of {process.id} yet{others}")
            print_out(f"http://{_LOOPBACK}:{own}/ leads to port {options.port} of {process.id}; Ctrl-C ends it\n")
            forward(listener)
    except ToolError as error:
        return print_refusal(options, "processes", error, "handrail processes")
    try:
        print_note(f"{process.id}: {_describe(process)}")
    except ToolError:
        print_note(f"{process.id}: removed")
    return OK


def _list_processes(
    options: SimpleNamespace, *, everywhere: bool = False, session: str | None = None
) -> list[tuple[StoredProcess, ProcessRecord]]:
    workspace = None if everywhere else os.path.realpath(resolve_workspace(options))
    folders = open_state_folder().sessions(workspace)
    if session is not None:
        folders = [folder for folder in folders if os.path.basename(folder) == session]
        if not folders:
            raise CommandFailed(f"there is no session {session[:80]!r}.", FAILED, then="handrail log --sessions")
    return list_processes(folders)


def _find_process(options: SimpleNamespace) -> tuple[StoredProcess, ProcessRecord]:
    """The process that an id or its beginning names: of this workspace, else of any."""
    for everywhere in (False, True):
        listed = {process.id: (process, record) for process, record in _list_processes(options, everywhere=everywhere)}
        found = [one for one in listed if options.id and one.startswith(options.id)]
        if (process_id := choose_id(options.id, dict.fromkeys(listed, ""), "handrail processes", found)) is not None:
            return listed[process_id]
    problem = f"there is no process session {options.id[:80]!r}. Nothing was done."
    raise CommandFailed(problem, FAILED, then="handrail processes --all")


def _render_processes(found: list[tuple[StoredProcess, ProcessRecord]], *, workspaces: bool) -> str:
    ids = shorten_ids(record.id for _, record in found)
    sessions = len({record.session_id for _, record in found}) > 1
    none = "–" if can_show("–") else "-"
    head = ("id", "state", "age", "port", *["session"] * sessions, *["workspace"] * workspaces, "command", "last line")
    rows = [
        (
            f"p-{ids[record.id]}",
            record.describe_state(),
            record.format_run_time(datetime.now(UTC)),
            ",".join(map(str, record.ports)) or none,
            *[record.session_id] * sessions,
            *[process.workspace or "?"] * workspaces,
            truncate(record.command, 40),
            truncate(record.last_line, 60),
        )
        for process, record in found
    ]
    return render_table([head, *rows])


def _print_raw(pieces: Iterator[bytes]) -> None:
    try:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        silence(sys.stdout)


def _stop_all(options: SimpleNamespace, running: list[StoredProcess]) -> int:
    for process in running:
        process.ask_to_stop()  # all at once: each may take its time
    ended: list[ProcessRecord] = []
    errors: list[dict[str, object]] = []
    for process in running:
        try:
            ended.append(process.stop())
        except ToolError as error:
            errors.append({"id": process.id, **build_error_data(error)})
    if options.json:
        print_json(encode({"schema": _SCHEMA, "processes": ended, "errors": errors}))
    else:
        print_out("".join(f"stopped {record.id}: {to_one_line(record.command)}\n" for record in ended))
        for error in errors:
            print_error(f"{error['id']}: {error['message']}", "handrail processes")
        if not running:
            print_note("nothing is running")
    return FAILED if errors else OK


def _listen(options: SimpleNamespace) -> socket.socket:
    port: int = options.port if options.to is None else options.to
    try:
        return socket.create_server((_LOOPBACK, port))
    except OSError as error:
        why = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be opened ({error.strerror})"
        raise CommandFailed(f"port {port} of this machine {why}. Nothing is forwarded.", FAILED) from None


def _describe(process: StoredProcess) -> str:
    return process.record().describe(datetime.now(UTC))


def _act(options: SimpleNamespace, process: StoredProcess, deed: str, action: Callable[[], ProcessRecord]) -> int:
    try:
        record = action()
    except ToolError as error:
        return print_refusal(options, "processes", error, "handrail processes")
    if options.json:
        print_json(encode({"schema": _SCHEMA, "process": record}))
    else:
        print_out(f"{deed} {process.id}: {to_one_line(record.command)}\n")
    return OK


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--session", metavar="ID", help="only of this session (all of the workspace)")
    parser.add_argument("--all", action="store_true", help="of every workspace")
    add_place_options(parser)


def _add_log_arguments(parser: ArgumentParser) -> None:
    _add_id(parser)
    parser.add_argument("--raw", action="store_true", help="byte for byte, for a file or a pipe")
    parser.add_argument("--follow", action="store_true", help="follow the output until the process ends")
    add_workspace_option(parser)
    parser.set_defaults(json=False)


def _add_write_arguments(parser: ArgumentParser) -> None:
    _add_id(parser)
    parser.add_argument("text", metavar="TEXT", nargs="?", help="a line; - sends stdin unchanged")
    parser.add_argument("--eof", action="store_true", help="end its input afterwards")
    add_place_options(parser)


def _add_forward_arguments(parser: ArgumentParser) -> None:
    _add_id(parser)
    parser.add_argument(
        "port", metavar="PORT", type=parse_number(1, 65_535), help="the port that the process listens on"
    )
    to = "the local port (the same); 0: any free port"
    parser.add_argument("--to", metavar="PORT", type=parse_number(0, 65_535), help=to)
    add_workspace_option(parser)
    parser.set_defaults(json=False)


def _add_stop_arguments(parser: ArgumentParser) -> None:
    _add_id(parser, nargs="?")
    parser.add_argument("--session", metavar="ID", help="all of a session")
    parser.add_argument("--all", action="store_true", help="of every workspace")
    add_place_options(parser)


def _add_remove_arguments(parser: ArgumentParser) -> None:
    _add_id(parser)
    add_place_options(parser)


def _add_id(parser: ArgumentParser, nargs: Literal["?"] | None = None) -> None:
    parser.add_argument("id", metavar="ID", nargs=nargs, help="its id, or the beginning of it")


COMMANDS = {
    "processes": Command(
        run,
        _add_arguments,
        ("handrail processes --all", "handrail processes stop p-7fq"),
        {FAILED: "there is no such session"},
    ),
    "processes log": Command(
        run_log,
        _add_log_arguments,
        ("handrail processes log p-7fq --follow", "handrail processes log p-7fq --raw > server.log"),
        {FAILED: "there is no such process session"},
    ),
    "processes write": Command(
        run_write,
        _add_write_arguments,
        ("handrail processes write p-7fq yes", "handrail processes write p-7fq - --eof < answers.txt"),
        {FAILED: "there is no such process session, or it has ended"},
    ),
    "processes forward": Command(
        run_forward,
        _add_forward_arguments,
        ("handrail processes forward p-7fq 8000", "handrail processes forward p-7fq 80 --to 8080"),
        {
            OK: "the background command has ended",
            FAILED: "there is no such process session, it is unreachable, or the local port is taken",
        },
    ),
    "processes stop": Command(
        run_stop,
        _add_stop_arguments,
        ("handrail processes stop p-7fq", "handrail processes stop --all"),
        {FAILED: "there is no such process session, or it could not be stopped"},
    ),
    "processes remove": Command(
        run_remove,
        _add_remove_arguments,
        ("handrail processes remove p-7fq", "handrail processes remove p-7fq --json"),
        {FAILED: "there is no such process session"},
    ),
}
