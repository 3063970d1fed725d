"""The Python that handrail runs in, as a command is shown it that has a proxy: it hands the proxy a port, once."""

import glob
import os
import sys
from collections.abc import Iterator

from handrail.protocol.errors import ToolError
from handrail.sandbox.view.finding import build_empty_mount, find_mounts
from handrail.sandbox.view.mounts import Mount, is_shown

_WITHHELD = ("site-packages", "dist-packages")


def find_interpreter() -> str:
    """Where it is, past environments and links; ToolError where it cannot be told."""
    program = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable or "")
    if "python" not in os.path.basename(program) or not os.path.isfile(program) or not os.path.isfile(os.__file__):
        raise ToolError(
            "UNAVAILABLE",
            "The network cannot be opened to a command: the Python that handrail runs in is not a program with its"
            f" library beside it ({program or 'it cannot tell its path'}). Nothing was run. Run handrail with an"
            " installed Python.",
        )
    return program


def list_interpreter_mounts(around: tuple[Mount, ...]) -> Iterator[Mount]:
    """What shows it where it lies in a folder that is not shown: the program and its library, without packages."""
    library = os.path.dirname(os.path.realpath(os.__file__))
    if not is_shown(around, library):
        yield Mount("shown", library)
        yield from (build_empty_mount(path) for name in _WITHHELD if os.path.isdir(path := f"{library}/{name}"))
    for path in (find_interpreter(), *_shared_libraries(), *_folder_of_extensions()):
        yield from find_mounts(path)


def _shared_libraries() -> Iterator[str]:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    yield from sorted(glob.glob(f"{glob.escape(sys.base_prefix)}/lib*/libpython{version}*.so*"))


def _folder_of_extensions() -> Iterator[str]:
    import _socket  # noqa: PLC0415  only to see where it is

    if file := getattr(_socket, "__file__", None):
        yield os.path.dirname(os.path.realpath(file))
