"""A confined command that is ready to be started, whatever the tier."""

import os
from collections.abc import Iterable, Mapping
from typing import Self


class Launch:
    """What to start, and the descriptors it is held by. Who has it closes it; each descriptor is closed once only,
    since its number may be another's by then.

    What is started writes JSON documents to `status`: `{"child-pid": N}` before the command runs, `{"exit-code": N}`
    after it ended. A command that never ran has no exit code.
    """

    def __init__(
        self,
        *,
        tier: int,
        argv: tuple[str, ...],
        environment: Mapping[str, str],
        inherited: tuple[int, ...],
        status: int,
        lifeline: int,
        own_processes: bool,
    ) -> None:
        self.tier = tier
        self.argv = argv
        self.environment = environment
        self.inherited = inherited
        """Ends of pipes, and files, that belong to what is started."""
        self.status = status
        """The end of a pipe that the status is read from."""
        self.lifeline = lifeline
        """The end of a pipe that nothing is written to. The command ends when it is closed, or this process dies."""
        self.own_processes = own_processes
        """Whether child-pid is the first process of a namespace: when it is gone, so is everything that was started."""
        self._open = {*inherited, status, lifeline}

    def close_child_ends(self) -> None:
        """Closes here what belongs to what was started; to be called once it is."""
        self._close(self.inherited)

    def drop_lifeline(self) -> None:
        """Closes the lifeline: the command must end."""
        self._close((self.lifeline,))

    def close(self) -> None:
        """Lets go of everything; can be repeated."""
        self._close(tuple(self._open))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _close(self, descriptors: Iterable[int]) -> None:
        for descriptor in descriptors:
            if descriptor in self._open:
                self._open.discard(descriptor)
                os.close(descriptor)
