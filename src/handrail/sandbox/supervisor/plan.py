"""The plan that handrail gives to a supervisor."""

import marshal


class LandlockFence:
    def __init__(
        self,
        *,
        ruleset: int,
        filter: bytes,  # noqa: A002  the field's word
        capabilities: tuple[int, ...],
        private: bytes,
        private_rights: int,
        links: list[tuple[bytes, bytes]],
    ) -> None:
        self.ruleset = ruleset
        """A descriptor of Landlock rules. The rule of the private folder is still missing."""
        self.filter = filter
        """A compiled seccomp program."""
        self.capabilities = capabilities
        """The capabilities that root keeps."""
        self.private = private
        """The path of the private folder. The supervisor makes it with `home` and `tmp`, and removes it at the end."""
        self.private_rights = private_rights
        self.links = links
        """Links in the private home: their names and targets."""


class SupervisorPlan:
    """One command for a supervisor. Text is in bytes, since the supervisor may use another encoding."""

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
        fence: LandlockFence | None = None,
    ) -> None:
        self.arguments = arguments
        """The first one is the path of the program."""
        self.environment = environment
        self.cwd = cwd
        self.file_size = file_size
        self.threads = threads
        self.status = status
        self.lifeline = lifeline
        self.fence = fence
        """None in tier 0."""

    def encode(self) -> bytes:
        return marshal.dumps({**vars(self), "fence": vars(self.fence) if self.fence else None})

    @staticmethod
    def read(descriptor: int) -> "SupervisorPlan":
        """The plan of a memory file. Closes the descriptor."""
        with open(descriptor, "rb") as file:
            # The same interpreter wrote it, to a file that no other process has.
            fields = marshal.loads(file.read())  # noqa: S302
        fence = fields.pop("fence")
        return SupervisorPlan(**fields, fence=LandlockFence(**fence) if fence else None)
