"""What a host starts: our program by its name where it is installed, so that the file is right on every machine."""

import os
import shlex
import sys
from collections.abc import Mapping

import msgspec


class LaunchCommand(msgspec.Struct, frozen=True):
    """A program, and the words before ours."""

    program: str
    words: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    """What was asked for besides: --mode, --session."""

    remark: str = ""
    """What whoever has it written should know."""

    def build_serve_args(self, workspace: str | None = None) -> list[str]:
        """The words that have it serve a workspace, without the program. None is the folder that the host starts it in:
        whatever that turns out to be, it is then not taken for a home or a disk that somebody named."""
        named = [] if workspace is None else ["--workspace", workspace]
        return [*self.words, "mcp", *named, *self.extra]


def find_launch_command(environ: Mapping[str, str], extra: tuple[str, ...] = ()) -> LaunchCommand:
    """`handrail` where it is installed. Where it is only in the environment that runs now, its whole path: whoever
    starts the host need not have entered that. `uvx`, which fetches it, only for whoever came by uvx: its environments
    are gone tomorrow, and for all others the name could fetch something else than what they have.
    """
    own = os.path.join(sys.prefix, "bin") if sys.prefix != sys.base_prefix else ""
    folders = environ.get("PATH", "").split(os.pathsep)
    if any(os.path.isabs(folder) and folder.rstrip("/") != own and _has_us(folder) for folder in folders):
        return LaunchCommand("handrail", (), extra)
    if own and os.path.realpath(own).startswith(_cache_of_uv(environ)):
        return LaunchCommand("uvx", ("handrail",), extra)
    if own and _has_us(own):
        return _by_path(os.path.join(own, "handrail"), extra)
    remark = "handrail is on no PATH here, so the client will not find it. Install it, then do this again."
    return LaunchCommand("handrail", (), extra, remark)


def _by_path(program: str, extra: tuple[str, ...]) -> LaunchCommand:
    link = f"ln -s {shlex.quote(program)} ~/.local/bin/"
    remark = (
        f"{program} is a path of this machine, which others who share the file do not have. With a link to it on your"
        f" PATH the name is written instead: {link}"
    )
    return LaunchCommand(program, (), extra, remark)


def can_find_program(program: str, workspace: str, environ: Mapping[str, str]) -> bool:
    """Whether a host that starts this in the workspace finds it. What the host puts in (`${…}`, `~`) is for it to
    know."""
    if "$" in program or program.startswith("~"):
        return True
    if "/" in program:
        return _runs(os.path.join(workspace, program))
    return any(_runs(os.path.join(folder, program)) for folder in environ.get("PATH", "").split(os.pathsep))


def _has_us(folder: str) -> bool:
    return _runs(os.path.join(folder, "handrail"))


def _runs(program: str) -> bool:
    return os.path.isfile(program) and os.access(program, os.X_OK)


def _cache_of_uv(environ: Mapping[str, str]) -> str:
    home = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".cache")
    return os.path.join(os.path.realpath(environ.get("UV_CACHE_DIR") or os.path.join(home, "uv")), "")
