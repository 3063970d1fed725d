"""Files of a process session, and the plan of its keeper."""

import json
import marshal
import os

# § [process.keeper.plan] What the runtime tells a keeper.


class KeeperPlan:
    """One command to keep; text that is no UTF-8 is in bytes."""

    def __init__(
        self,
        *,
        arguments: list[bytes],
        environment: dict[bytes, bytes],
        tier: int,
        own_processes: bool,
        inherited: list[int],
        status: int,
        lifeline: int,
        folder: int,
        ready_fd: int,
        record: dict[str, str],
        memory: int,
        processes: int,
        disk: int,
        uppers: list[str],
        threads: int,
        idle: float,
        head: int,
        kept: int,
        segment: int,
        proxy: list[str] | None = None,
    ) -> None:
        self.arguments = arguments
        """The first is the program's path."""
        self.environment = environment
        self.tier = tier
        self.own_processes = own_processes
        self.inherited = inherited
        self.status = status
        self.lifeline = lifeline
        self.folder = folder
        """A descriptor of the folder, which holds its lock: as long as the keeper lives, whatever becomes of it."""
        self.ready_fd = ready_fd
        """The end of a pipe on which the keeper says, once, how the start went."""
        self.record = record
        """What is known already: the id, the command, the folder it runs in, whose it is."""
        self.memory = memory
        self.processes = processes
        self.disk = disk
        self.uppers = uppers
        self.threads = threads
        self.idle = idle
        """Seconds after which it is ended if it prints nothing and nobody asks for it."""
        self.head = head
        self.kept = kept
        self.segment = segment
        """Bytes of the log: of its beginning, of its end at least, and of one file of it."""
        self.proxy = proxy
        """The folder of a proxy to run, and the entries that are open; None where it has no network."""

    def write(self) -> int:
        """A descriptor of a file in memory that holds the plan."""
        descriptor = os.memfd_create("handrail-keeper")
        with open(descriptor, "wb", closefd=False) as file:
            file.write(marshal.dumps(vars(self)))
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    @staticmethod
    def read(descriptor: int) -> "KeeperPlan":
        """The plan that `write` left; closes the descriptor."""
        with open(descriptor, "rb") as file:
            # Written by this very interpreter a moment ago, into a file that nobody else has.
            return KeeperPlan(**marshal.loads(file.read()))  # noqa: S302


# § [process.keeper.files] The folder of a kept command: what its files are called, and how they are written: nobody
# § reads half of one.

VERSION = 1
"""Of the files and of what is said on the socket."""

RECORD = "record.json"
"""What it is. Written once, before anybody is told of it."""
END = "end.json"
"""How it ended. Who finds none, and the folder not locked, knows that its keeper was killed."""
_ENDING = "ending"
_CRASH = "crash"
SOCKET = "socket"
ASKED = "asked"
"""An empty file; its time is when somebody last asked for the output."""
ATTEMPTS = "attempts.jsonl"
"""What was tried through its proxy, a line each."""
LOG = "log-"
"""And where in the output the file begins: 20 digits, so that names sort as positions do."""
CLEARED = "cleared-"
"""An empty file; the output before the position in its name was cleared."""

BOOT = "/proc/sys/kernel/random/boot_id"

_NEW = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_END_ROOM_BYTES = 1024
_MAX_FILE_BYTES = 4 << 20

Json = dict[str, object]


def format_log_name(position: int) -> str:
    """The file of the log that begins at a position."""
    return f"{LOG}{position:020d}"


def write_record(folder: int, record: Json) -> None:
    """Writes it, with room for how it ends: a disk that is full by then must not keep that a secret."""
    make_empty(folder, ASKED)
    _write(folder, _ENDING, b" " * _END_ROOM_BYTES)
    _write(folder, "record.new", _encoded(record))
    os.rename("record.new", RECORD, src_dir_fd=folder, dst_dir_fd=folder)


def write_end(folder: int, end: Json) -> None:
    """Writes how it ended."""
    _write(folder, _ENDING, _encoded(end).ljust(_END_ROOM_BYTES))
    os.rename(_ENDING, END, src_dir_fd=folder, dst_dir_fd=folder)


def write_crash(folder: int) -> None:
    """Writes down the error that is being handled: nobody sees what a keeper would print."""
    import traceback  # noqa: PLC0415  hardly ever needed

    _write(folder, _CRASH, traceback.format_exc().encode("utf-8", "replace"))


def make_empty(folder: int, name: str) -> None:
    """Makes a file that only says that it is there, and when; or says so again."""
    os.close(os.open(name, _NEW, 0o600, dir_fd=folder))
    os.utime(name, dir_fd=folder)


def remove(folder: int, name: str) -> None:
    """Removes the folder of that name with all that is in it, the record first: half of it is nobody's."""
    for file in sorted(os.listdir(folder), key=lambda file: file != RECORD):
        os.unlink(file, dir_fd=folder)
    os.rmdir(os.path.join("..", name), dir_fd=folder)


def read_json(folder: int, name: str) -> Json | None:
    """What a file says; None where there is none, or nothing that makes sense."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        try:
            found = json.loads(file.read(_MAX_FILE_BYTES))
        except ValueError:
            return None
    return found if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType]


def _encoded(document: Json) -> bytes:
    return json.dumps({"v": VERSION, **document}).encode()


def _write(folder: int, name: str, data: bytes) -> None:
    """In place: what had room before has room now."""
    descriptor = os.open(name, _NEW, 0o600, dir_fd=folder)
    with open(descriptor, "wb", buffering=0) as file:
        while data:
            data = data[file.write(data) :]
