"""What the runtime tells a supervisor."""

import marshal
import os


class SupervisorPlan:
    """One command for a supervisor; text is in bytes, since the supervisor may take another encoding for granted."""

    def __init__(
        self,
        *,
        arguments: list[bytes],
        environment: dict[bytes, bytes],
        cwd: bytes,
        file_size: int,
        threads: int,
        status: int,
        lifeline: int,
        fence: "LandlockFence | None" = None,
    ) -> None:
        self.arguments = arguments
        """The first is the program's path."""
        self.environment = environment
        self.cwd = cwd
        self.file_size = file_size
        self.threads = threads
        """That it may have at a time."""
        self.status = status
        self.lifeline = lifeline
        self.fence = fence
        """None where nothing confines the command: tier 0."""

    def write(self) -> int:
        """A descriptor of a file in memory that holds the plan."""
        fence = vars(self.fence) if self.fence else None
        descriptor = os.memfd_create("handrail-plan")
        with open(descriptor, "wb", closefd=False) as file:
            file.write(marshal.dumps({**vars(self), "fence": fence}))
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    @staticmethod
    def read(descriptor: int) -> "SupervisorPlan":
        """The plan that `write` left; closes the descriptor."""
        with open(descriptor, "rb") as file:
            # Written by this very interpreter a moment ago, into a file that nobody else has.
            told = marshal.loads(file.read())  # noqa: S302
        fence = told.pop("fence")
        return SupervisorPlan(**told, fence=LandlockFence(**fence) if fence else None)


class LandlockFence:
    """What confines the command."""

    def __init__(
        self,
        *,
        ruleset: int,
        filter: bytes,  # noqa: A002  there is no other word for it
        capabilities: tuple[int, ...],
        private: bytes,
        private_rights: int,
        links: list[tuple[bytes, bytes]],
    ) -> None:
        self.ruleset = ruleset
        """A descriptor of Landlock's rules, but for those of the private folder."""
        self.filter = filter
        """A compiled seccomp program."""
        self.capabilities = capabilities
        """The rights that root keeps."""
        self.private = private
        """The folder to be made for the command, with `home` and `tmp` in it, and to be removed after it."""
        self.private_rights = private_rights
        self.links = links
        """What stands in its home: names there, and the real places that they lead to."""
