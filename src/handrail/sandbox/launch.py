"""A confined command that is ready to be started, whatever the tier."""

import contextlib
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
        held: bool = False,
    ) -> None:
        self.tier = tier
        self.argv = argv
        self.environment = environment
        self.inherited = inherited
        """Ends of pipes, and files, that belong to what is started."""
        self.status = status
        """The end of a pipe that the status is read from."""
        self.lifeline = lifeline
        """The end of a pipe that nothing is written to but by `let_begin`. When it is closed, or this process dies, the
        command must end."""
        self.own_processes = own_processes
        """Whether child-pid is the first process of a namespace: when it is gone, so is everything that was started."""
        self.held = held
        """Whether the command, once its sandbox is made, waits to be let begin."""
        self._has_begun = not held
        self._open = {*inherited, status, lifeline}

    def close_child_ends(self) -> None:
        """Closes here what belongs to what was started; to be called once it is."""
        self._close(self.inherited)

    def release(self) -> None:
        """Lets a command begin that waits; nothing where its sandbox is gone already, of which the status tells."""
        if not self._has_begun and self.lifeline in self._open:
            self._has_begun = True
            with contextlib.suppress(BrokenPipeError):
                os.write(self.lifeline, b"\n")

    def drop_lifeline(self) -> None:
        """Closes the lifeline: the command must end. Not that of one that still waits, which would go on at its end:
        who does not let it begin kills it, and closes all of this."""
        if self._has_begun:
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
