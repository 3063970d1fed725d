"""The check of doctor for clients: which of them have our tools in this folder, and whether they go round them."""

import os
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from handrail.cli.exits import Stop
from handrail.cli.preferences import project_folder
from handrail.cli.rows import Row, without_home

if TYPE_CHECKING:
    from handrail.mcp.hosts.host import Host, HostFile


def clients() -> Iterator[Row]:
    """Which clients are told of handrail here. Their files are only read."""
    from handrail.mcp.hosts.command import command_here  # noqa: PLC0415
    from handrail.mcp.hosts.known import NAMES, hosts  # noqa: PLC0415

    folder = project_folder(Namespace(workspace=None))
    rows = (
        [_row(host, os.path.realpath(folder)) for host in hosts(command_here(os.environ), os.environ)] if folder else []
    )
    told = [row for row in rows if row is not None]
    yield from told
    if not told:
        how = f"handrail mcp --config NAME tells one of {', '.join(NAMES)}"
        yield Row("clients", "ok", f"no client is told of handrail here; {how}")


def _row(host: "Host", workspace: str) -> Row | None:
    """What there is to say of a client that has an entry for us, or whose file cannot be read; None of any other."""
    from handrail.mcp.hosts.command import is_there  # noqa: PLC0415
    from handrail.mcp.hosts.host import has_the_rest, knows_us, programs_in  # noqa: PLC0415

    fix = f"handrail mcp --config {host.name} --write"
    try:
        texts = [_text(file, workspace) for file in host.files]
        if texts[0] is None or not knows_us(host.files[0], texts[0]):
            return None
        gone = [
            program for program in programs_in(host.files[0], texts[0]) if not is_there(program, workspace, os.environ)
        ]
        off = all(text is not None and has_the_rest(file, text) for file, text in zip(host.files, texts, strict=True))
    except Stop as error:
        text = without_home(str(error)).replace(" Nothing was written.", "")
        return Row("clients", "warning", f"{host.title}: {text}", fix.removesuffix(" --write"))
    if gone:
        return _gone(host, gone[0], fix)
    if not off:
        return Row("clients", "warning", f"{host.title} has handrail's tools, and its own go round them", fix)
    return Row("clients", "ok", f"{host.title} has handrail's tools. {host.off}")


def _text(file: "HostFile", workspace: str) -> str | None:
    """What a file holds; Stop where it cannot be read."""
    from handrail.cli.host_files import find_file  # noqa: PLC0415
    from handrail.mcp.hosts.editing.places import Broken  # noqa: PLC0415
    from handrail.mcp.hosts.host import check  # noqa: PLC0415

    found = find_file(file, workspace)
    try:
        if found.text is not None:
            check(file, found.text)
    except Broken as error:
        raise Stop(f"{found.shown} cannot be used: {error}; correct it") from None
    return found.text


def _gone(host: "Host", program: str, fix: str) -> Row:
    """A client may be started with another PATH than this one; a path is the same to all."""
    path = os.path.isabs(program)
    where = "is not there:" if path else "is on no PATH here; if on none of the client's,"
    text = f"{host.title} is to start {without_home(program)}, which {where} it has none of handrail's tools"
    return Row("clients", "error" if path else "warning", f"{text}. {host.off}", fix)
