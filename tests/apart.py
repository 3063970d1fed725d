"""What a program gets that a test starts apart from this process."""

import os
from pathlib import Path

import handrail

_SOURCE = str(Path(handrail.__file__).parent.parent)


def environment_in(folder: Path, **more: str) -> dict[str, str]:
    """Nothing of this machine but the search path: a home and a state folder below the folder."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    own = {"HOME": str(home), "HANDRAIL_STATE_DIR": str(folder / "state")}
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": _SOURCE, **own, **more}
