"""Everything outside that a command could send something to: sockets of several kinds, and pipes with names."""

import contextlib
import os
import socket
from pathlib import Path

from tests.escape.outside.files import SECRET


class Listeners:
    """Listens, counts what has come in, and answers every connection with a secret."""

    def __init__(self, place: Path, name: str, *, root: bool) -> None:
        self.place = place
        self.name = name
        self.runs = Path("/run") / f"{name}.sock" if root else None
        self.seen: dict[str, int] = {}
        self.build()

    def build(self) -> None:
        self.close()
        self.sockets: dict[str, socket.socket] = {}
        self._listen("TCP", socket.AF_INET, ("127.0.0.1", 0))
        with contextlib.suppress(OSError):
            self._listen("TCP6", socket.AF_INET6, ("::1", 0))
        self._listen("UDP", socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM)
        self._listen("ABSTRACT", socket.AF_UNIX, f"\0{self.name}")
        self._listen("ABSTRACT_DATAGRAMS", socket.AF_UNIX, f"\0{self.name}-datagrams", socket.SOCK_DGRAM)
        for kind, path in self._paths().items():
            path.unlink(missing_ok=True)
            self._listen(kind, socket.AF_UNIX, str(path))
        self.pipes: dict[str, int] = {}
        for kind, path in self._pipe_paths().items():
            path.unlink(missing_ok=True)
            os.mkfifo(path)
            self.pipes[kind] = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def constants(self) -> dict[str, object]:
        return {
            "PORT": self.sockets["TCP"].getsockname()[1],
            "PORT6": self.sockets["TCP6"].getsockname()[1] if "TCP6" in self.sockets else 0,
            "UDP_PORT": self.sockets["UDP"].getsockname()[1],
            "ABSTRACT": self.name,
            **{kind: str(path) for kind, path in (*self._paths().items(), *self._pipe_paths().items())},
        }

    def fingerprint(self) -> dict[str, object]:
        for kind, listener in self.sockets.items():
            with contextlib.suppress(OSError):
                while self._taken(listener):
                    self.seen[kind] = self.seen.get(kind, 0) + 1
        for kind, descriptor in self.pipes.items():
            with contextlib.suppress(OSError):
                while os.read(descriptor, 4096):
                    self.seen[kind] = self.seen.get(kind, 0) + 1
        return {f"what came in at {kind}": count for kind, count in self.seen.items()}

    def close(self) -> None:
        for listener in getattr(self, "sockets", {}).values():
            listener.close()
        for descriptor in getattr(self, "pipes", {}).values():
            os.close(descriptor)
        for path in self._paths().values():
            path.unlink(missing_ok=True)

    def _listen(self, kind: str, family: int, address: object, sort: int = socket.SOCK_STREAM) -> None:
        listener = socket.socket(family, sort)
        self.sockets[kind] = listener
        listener.bind(address)  # type: ignore[arg-type]
        if sort == socket.SOCK_STREAM:
            listener.listen(64)
        listener.setblocking(False)

    def _taken(self, listener: socket.socket) -> bool:
        if listener.type == socket.SOCK_DGRAM:
            return bool(listener.recvfrom(100)[0])
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(SECRET.encode())
        return True

    def _paths(self) -> dict[str, Path]:
        paths = {
            "SOCKET_OUTSIDE": self.place / "outside-sockets/agent.sock",
            "SOCKET_IN_TMP": Path("/tmp") / f"{self.name}.sock",
            "SOCKET_SHOWN": self.place / "shown-sockets/agent.sock",
            "SOCKET_IN_WORKSPACE": self.place / "workspace/.agent.sock",
            "SOCKET_DEEP": self.place / "workspace/deep/er/agent.sock",
        }
        if self.runs:
            paths["SOCKET_IN_RUN"] = self.runs
        for path in paths.values():
            path.parent.mkdir(parents=True, exist_ok=True)
        return paths

    def _pipe_paths(self) -> dict[str, Path]:
        return {
            "PIPE_SHOWN": self.place / "shown-sockets/pipe",
            "PIPE_OUTSIDE": self.place / "outside-sockets/pipe",
            "PIPE_IN_WORKSPACE": self.place / "repositories/pipe",
        }
