"""How packages are brought into the environment that runs. The `pip` on a person's PATH is often that of another one,
where our name would fetch whatever an index has under it."""

import shlex
import sys
from importlib.util import find_spec


def build_install_command(extra: str) -> str:
    """The command for a shell that brings one of our extras."""
    return build_pip_command(f"handrail[{extra}]")


def build_pip_command(*words: str) -> str:
    """The command for a shell that installs something here."""
    python = sys.executable or "python3"
    pip = [python, "-m", "pip", "install"] if find_spec("pip") else ["uv", "pip", "install", "--python", python]
    return shlex.join([*pip, *words])
