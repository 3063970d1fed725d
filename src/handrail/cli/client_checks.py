"""The check of doctor for clients: which of them have our tools in this folder, and whether they go round them."""

import os
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from handrail.cli.exits import Stop
from handrail.cli.preferences import project_folder
from handrail.cli.rows import Row, without_home

if TYPE_CHECKING:
    from handrail.mcp.hosts.host import Host


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
    from handrail.cli.host_files import find_file  # noqa: PLC0415
    from handrail.mcp.hosts.editing.places import Broken  # noqa: PLC0415
    from handrail.mcp.hosts.host import has_the_rest, knows_us  # noqa: PLC0415

    fix = f"handrail mcp --config {host.name} --write"
    try:
        texts = [find_file(file, workspace).text for file in host.files]
        if texts[0] is None or not knows_us(host.files[0], texts[0]):
            return None
        off = all(text is not None and has_the_rest(file, text) for file, text in zip(host.files, texts, strict=True))
    except (Stop, Broken) as error:
        text = without_home(str(error)).removesuffix(" Nothing was written.")
        return Row("clients", "warning", f"{host.title}: {text}", fix.removesuffix(" --write"))
    if not off:
        return Row("clients", "warning", f"{host.title} has handrail's tools, and its own go round them", fix)
    return Row("clients", "ok", f"{host.title} has handrail's tools. {host.off}")
