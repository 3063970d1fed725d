"""The check of doctor for clients: which of them have our tools in this folder, and whether they go round them."""

import os
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from handrail.cli.exits import CommandFailed
from handrail.cli.preferences import find_project_folder
from handrail.cli.rows import Finding, replace_home

if TYPE_CHECKING:
    from handrail.mcp.hosts.config_file import HostFile
    from handrail.mcp.hosts.hosts import McpHost


def check_clients() -> Iterator[Finding]:
    """Which clients are told of handrail here. Their files are only read."""
    from handrail.mcp.hosts.hosts import NAMES, find_launch_command, list_hosts  # noqa: PLC0415

    folder = find_project_folder(Namespace(workspace=None))
    rows = (
        [_row(host, os.path.realpath(folder)) for host in list_hosts(find_launch_command(os.environ), os.environ)]
        if folder
        else []
    )
    told = [row for row in rows if row is not None]
    yield from told
    if not told:
        how = f"handrail mcp --config NAME tells one of {', '.join(NAMES)}"
        yield Finding("clients", "ok", f"no client is told of handrail here; {how}")


def _row(host: "McpHost", workspace: str) -> Finding | None:
    """What there is to say of a client that has an entry for us, or whose file cannot be read; None of any other."""
    from handrail.mcp.hosts.hosts import can_find_program  # noqa: PLC0415

    fix = f"handrail mcp --config {host.name} --write"
    try:
        texts = [_text(file, workspace) for file in host.files]
        if texts[0] is None or not host.files[0].has_handrail_entry(texts[0]):
            return None
        gone = [
            program
            for program in host.files[0].list_programs(texts[0])
            if not can_find_program(program, workspace, os.environ)
        ]
        off = all(
            text is not None and file.has_other_settings(text) for file, text in zip(host.files, texts, strict=True)
        )
    except CommandFailed as error:
        text = replace_home(str(error)).replace(" Nothing was written.", "")
        return Finding("clients", "warning", f"{host.title}: {text}", fix.removesuffix(" --write"))
    if gone:
        return _gone(host, gone[0], fix)
    if not off:
        return Finding("clients", "warning", f"{host.title} has handrail's tools, and its own go round them", fix)
    return Finding("clients", "ok", f"{host.title} has handrail's tools. {host.off}")


def _text(file: "HostFile", workspace: str) -> str | None:
    """What a file holds; Stop where it cannot be read."""
    from handrail.cli.host_files import find_file  # noqa: PLC0415
    from handrail.mcp.hosts.merge import ConfigSyntaxError  # noqa: PLC0415

    found = find_file(file, workspace)
    try:
        if found.text is not None:
            file.check(found.text)
    except ConfigSyntaxError as error:
        raise CommandFailed(f"{found.shown} cannot be used: {error}; correct it") from None
    return found.text


def _gone(host: "McpHost", program: str, fix: str) -> Finding:
    """A client may be started with another PATH than this one; a path is the same to all."""
    path = os.path.isabs(program)
    where = "is not there:" if path else "is on no PATH here; if on none of the client's,"
    text = f"{host.title} is to start {replace_home(program)}, which {where} it has none of handrail's tools"
    return Finding("clients", "error" if path else "warning", f"{text}. {host.off}", fix)
