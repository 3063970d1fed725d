"""What the runtime tells a keeper."""

import marshal
import os


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
