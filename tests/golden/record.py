"""Records the sessions of sessions.py under the name of this version: tests/golden/VERSION/*.json.

What is there is never written again: sessions that people have recorded must load for ever, and these stand for them.

python tests/golden/record.py                 records a set; refuses where this version has one
python tests/golden/record.py --name NAME …   the same under another name, such as 0.1.0-second; sessions can be named
python tests/golden/record.py --renderings    writes what the event adapters make of the newest set: look at the
                                              difference before it is kept
"""

import argparse
import getpass
import os
import re
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from bundles import packed, write_bundle
from expectations import expected_of
from renderings import write_renderings
from sessions import SESSION, SESSIONS, Stage

from handrail.protocol.version import VERSION

HERE = Path(__file__).resolve().parent
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/person", "USER": "person", "LOGNAME": "person"}
ENVIRONMENT |= {"SHELL": "/bin/sh", "LANG": "C.UTF-8", "TZ": "UTC"}

_NAMES = {play.__name__ for play in SESSIONS}


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default=VERSION)
    parser.add_argument("only", nargs="*", help="the sessions to record, where not all of them are meant")
    parser.add_argument("--renderings", action="store_true")
    options = parser.parse_args()
    if options.renderings:
        write_renderings()
        return
    folder = HERE / options.name
    if folder.exists():
        raise SystemExit(f"{folder.name} is recorded already, and stays as it is. Choose another --name.")
    traces = (rf"\b{re.escape(socket.gethostname())}\b", os.path.expanduser("~/"), str(HERE.parent.parent))
    os.environ.clear()
    os.environ.update(ENVIRONMENT)
    os.umask(0o022)
    bundles = {play.__name__: _recorded(play, traces) for play in SESSIONS if play.__name__ in (options.only or _NAMES)}
    folder.mkdir()
    for name, bundle in bundles.items():
        write_bundle(folder / f"{name}.json", bundle)
        print(f"recorded {folder.name}/{name}.json")


def _recorded(play: Any, traces: tuple[str, ...]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="handrail-golden-") as temporary:
        stage = Stage(Path(temporary))
        play(stage)
        head = {"about": " ".join(play.__doc__.split()), "session": SESSION, "environment": ENVIRONMENT}
        bundle = packed(stage.workspace, stage.state, **head)
        _name_nobody(bundle["state"])
        bundle["expected"] = expected_of(stage.workspace, stage.state, SESSION)
        text = str(bundle)
        if found := [trace for trace in (temporary, *traces) if re.search(trace, text)]:
            raise SystemExit(f"{play.__name__} names the machine it was recorded on: {', '.join(found)}")
        return bundle


def _name_nobody(state: dict[str, Any]) -> None:
    """What commands were started with holds the name of the account: everybody has a root, nobody else is named."""
    account = getpass.getuser() if os.getuid() else "root"
    for path, content in state.items():
        if "/environments/" in path and account != "root":
            state[path] = content.replace(f'"{account}"', '"person"')


if __name__ == "__main__":
    sys.exit(main())
