"""What processes share through the kernel and not through files: memory, semaphores, messages, keys."""

import contextlib
import ctypes
import os
from pathlib import Path

from tests.escape.outside.files import SECRET

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.shmat.restype = ctypes.c_void_p
_LIBC.shmat.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
_LIBC.shmdt.argtypes = (ctypes.c_void_p,)
_NUMBERS = {"x86_64": (248, 250), "aarch64": (217, 219)}
_ADD_KEY, _KEYCTL = _NUMBERS.get(os.uname().machine, (248, 250))
_JOIN, _READ, _DESCRIBE, _SEARCH = 1, 11, 6, 10
_SESSION = -3
_REMOVE, _GET_VALUE, _SET_VALUE, _STAT = 0, 12, 16, 2


class SharedObjects:
    """Makes one of each, tells how they are, makes them anew."""

    def __init__(self, name: str) -> None:
        self.name = name
        _LIBC.syscall(_KEYCTL, _JOIN, name.encode())
        self.build()

    def build(self) -> None:
        self.close()
        self.memory = _LIBC.shmget(0, 4096, 0o600 | 0o1000)
        self._with_memory(lambda at: ctypes.memmove(at, SECRET.encode(), len(SECRET)))
        self.semaphore = _LIBC.semget(0, 1, 0o600 | 0o1000)
        self.messages = _LIBC.msgget(0, 0o600 | 0o1000)
        _LIBC.msgsnd(self.messages, ctypes.c_char_p((1).to_bytes(8, "little") + SECRET.encode()), len(SECRET), 0)
        self.queue = self._queue()
        payload = SECRET.encode()
        self.key = _LIBC.syscall(_ADD_KEY, b"user", self.name.encode(), payload, len(payload), _SESSION)

    def constants(self) -> dict[str, object]:
        return {
            "SHARED_MEMORY": self.memory,
            "SEMAPHORE": self.semaphore,
            "MESSAGES": self.messages,
            "QUEUE": f"/{self.name}",
            "KEY": self.key,
            "KEY_NAME": self.name,
        }

    def fingerprint(self) -> dict[str, object]:
        held = ctypes.create_string_buffer(4096)
        self._with_memory(lambda at: ctypes.memmove(held, at, 4096))
        key = ctypes.create_string_buffer(200)
        length = _LIBC.syscall(_KEYCTL, _READ, self.key, key, 200)
        ring = ctypes.create_string_buffer(4096)
        entries = _LIBC.syscall(_KEYCTL, _READ, _SESSION, ring, 4096)
        return {
            "shared memory": held.raw.rstrip(b"\0"),
            "semaphore": _LIBC.semctl(self.semaphore, 0, _GET_VALUE),
            "messages": _LIBC.msgctl(self.messages, _STAT, ctypes.create_string_buffer(512)),
            "number of messages": self._waiting(),
            "message queue": self._queued(),
            "key": key.raw[: max(0, length)],
            "keys of the session": entries,
        }

    def close(self) -> None:
        if not hasattr(self, "memory"):
            return
        _LIBC.shmctl(self.memory, _REMOVE, None)
        _LIBC.semctl(self.semaphore, 0, _REMOVE)
        _LIBC.msgctl(self.messages, _REMOVE, None)
        if self.queue >= 0:
            os.close(self.queue)
            _LIBC.mq_unlink(f"/{self.name}".encode())

    def _with_memory(self, use: object) -> None:
        at = _LIBC.shmat(self.memory, None, 0)
        if at not in (None, ctypes.c_void_p(-1).value):
            use(at)  # type: ignore[operator]
            _LIBC.shmdt(at)

    def _waiting(self) -> list[str]:
        with contextlib.suppress(OSError):
            lines = Path("/proc/sysvipc/msg").read_text().splitlines()[1:]
            return [line.split()[4] for line in lines if int(line.split()[1]) == self.messages]
        return []

    def _queue(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NONBLOCK
        queue = _LIBC.mq_open(f"/{self.name}".encode(), flags, 0o600, None)
        if queue >= 0:
            _LIBC.mq_send(queue, SECRET.encode(), ctypes.c_size_t(len(SECRET)), 0)
        return queue

    def _queued(self) -> str:
        with contextlib.suppress(OSError):
            return Path(f"/proc/self/fdinfo/{self.queue}").read_text() + os.pread(self.queue, 200, 0).decode()
        return "none"
