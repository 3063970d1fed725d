"""What belongs to the whole machine, and the runtime's own terminal, descriptors and environment."""

import contextlib
import ctypes
import fcntl
import os
import select
import socket
import termios
from pathlib import Path

from tests.escape.attack import HIJACKED
from tests.escape.outside.files import SECRET

_VALUES = ("kernel/core_pattern", "kernel/hostname", "kernel/modprobe", "kernel/domainname", "vm/overcommit_memory")
_LIBC = ctypes.CDLL(None, use_errno=True)
_NAME_TO_HANDLE = {"x86_64": 303, "aarch64": 264}


class Machine:
    """The machine as it is to stay. The runtime has its own terminal, open secrets and a telling environment."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.terminal = _controlling_terminal()
        self.opened = self._inheritable()

    def constants(self) -> dict[str, object]:
        return {
            "TERMINAL": os.ttyname(self.terminal) if self.terminal is not None else "/dev/pts/none",
            "HANDLE": _handle(self.place / "outside/secret.txt"),
            "HOST_NAME": os.uname().nodename,
            "TERMINAL_DEVICE": os.fstat(self.terminal).st_rdev if self.terminal is not None else 0,
        }

    def fingerprint(self) -> dict[str, object]:
        values = {f"/proc/sys/{name}": _read(Path("/proc/sys") / name) for name in _VALUES}
        return {
            **values,
            "mounts": self._mounts(),
            "what was typed": self._typed(),
            "uid map": _read(Path("/proc/self/uid_map")),
            "root folder": os.stat("/").st_ino,
        }

    def build(self) -> None:
        """Nothing here can be made anew but what was typed, which is read with its fingerprint."""

    def close(self) -> None:
        for descriptor in self.opened:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _mounts(self) -> list[str]:
        """Mounts of the system's folders and of ours; others may come and go meanwhile."""
        lines = (_read(Path("/proc/self/mountinfo")) or "").splitlines()
        return [line for line in lines if (at := line.split()[4]).count("/") < 2 or at.startswith(str(self.place))]

    def _typed(self) -> bytes:
        if self.terminal is None or not select.select([self.terminal], [], [], 0)[0]:
            return b""
        return os.read(self.terminal, 1000)

    def _inheritable(self) -> list[int]:
        """A secret, a folder outside, a socket and a pidfd that a careless runtime would pass on."""
        kept = self.place / "outside-process/inherited"
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(SECRET)
        ends = socket.socketpair()
        found = [
            os.open(kept, os.O_RDWR),
            os.open(self.place, os.O_RDONLY | os.O_DIRECTORY),
            os.pidfd_open(os.getpid()),
        ]
        high = fcntl.fcntl(found[0], fcntl.F_DUPFD, 200)
        found += [end.detach() for end in ends] + [high]
        for descriptor in found:
            os.set_inheritable(descriptor, True)
        return found


def telling_environment(place: Path) -> dict[str, str]:
    """Variables of the runtime: secrets by many names, and whatever makes programs run something."""
    say = f"echo {HIJACKED}"
    script = place / "hijack.sh"
    script.write_text(f"#!/bin/bash\n{say}\n")
    script.chmod(0o755)
    folder = place / "hijack"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(f"print('{HIJACKED}')\n")
    names = (
        "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "NPM_TOKEN", "PGPASSWORD", "OPENAI_API_KEY", "ANTHROPIC_API_KEY",
        "MY_SECRET", "PASSPHRASE", "SESSION_COOKIE", "PLAIN_NAME", "HANDRAIL_SECRET", "lower_case_secret",
    )  # fmt: skip
    programs = ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "PAGER", "GIT_EDITOR", "EDITOR", "GIT_SSH_COMMAND", "GIT_ASKPASS")
    return {
        **dict.fromkeys(names, SECRET),
        **{name: str(script) for name in programs},
        "DATABASE_URL": f"postgres://me:{SECRET}@localhost/base",
        "LANGUAGE": SECRET,
        "BASH_ENV": str(script),
        "ENV": str(script),
        "BASH_FUNC_true%%": f"() {{ {say}; }}",
        "BASH_FUNC_cat%%": f"() {{ {say}; }}",
        "PROMPT_COMMAND": say,
        "SHELLOPTS": "braceexpand:hashall:interactive-comments:xtrace",
        "PS4": f"$({say})",
        "CDPATH": str(place),
        "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}",
        "PYTHONSTARTUP": str(folder / "sitecustomize.py"),
        "PYTHONINSPECT": "1",
        "PERL5OPT": "-Mnothing_of_this_name",
        "NODE_OPTIONS": "--require /nothing/of/this/name",
        "LD_PRELOAD": "/nothing/of/this/name.so",
        "LD_AUDIT": "/nothing/of/this/name.so",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(script),
        "GIT_DIR": str(place / "nowhere"),
        "PATH": f".:bin:{os.environ.get('PATH', '/usr/bin:/bin')}",
        "SSH_AUTH_SOCK": str(place / "outside-sockets/agent.sock"),
    }


def _controlling_terminal() -> int | None:
    """By its own name, which the part is told: /dev/tty would be another terminal to each who opens it."""
    with contextlib.suppress(OSError, KeyError):
        descriptor = os.open(os.environ.pop("TERMINAL_NAME"), os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
        settings = termios.tcgetattr(descriptor)
        settings[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(descriptor, termios.TCSANOW, settings)
        return descriptor
    return None


def _handle(path: Path) -> bytes:
    """The name by which `open_by_handle_at` finds a file without its path."""
    room = ctypes.create_string_buffer((128).to_bytes(4, "little") + bytes(132), 136)
    mount = ctypes.c_int()
    number = _NAME_TO_HANDLE.get(os.uname().machine, 303)
    _LIBC.syscall(number, -100, str(path).encode(), room, ctypes.byref(mount), 0)
    return room.raw


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None
