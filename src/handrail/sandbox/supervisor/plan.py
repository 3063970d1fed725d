"""The plan that handrail gives to a supervisor."""

import marshal


class _Fields:
    """A record without the slow imports of dataclasses and named tuples. Each subclass declares its fields."""

    def __init__(self, **fields: object) -> None:
        vars(self).update(fields)


class LandlockFence(_Fields):
    ruleset: int
    """A descriptor of Landlock rules. The rule of the private folder is still missing."""
    filter: bytes
    """A compiled seccomp program."""
    capabilities: tuple[int, ...]
    """The capabilities that root keeps."""
    private: bytes
    """The path of the private folder. The supervisor makes it with `home` and `tmp`, and removes it at the end."""
    private_rights: int
    links: list[tuple[bytes, bytes]]
    """Links in the private home: their names and targets."""


class SupervisorPlan(_Fields):
    """One command for a supervisor. Text is in bytes, since the supervisor may use another encoding."""

    arguments: list[bytes]
    """The first one is the path of the program."""
    environment: dict[bytes, bytes]
    cwd: bytes
    file_size: int
    threads: int
    status: int
    lifeline: int
    fence: LandlockFence | None
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
