"""A sandboxed command that is ready to start, in any tier."""

import os
from collections.abc import Iterable, Mapping
from typing import Self


class Launch:
    """The program to start, with the descriptors that control it. The owner closes it.

    The program writes JSON documents to `status`: `{"child-pid": N}` before the command runs, `{"exit-code": N}` after
    it ended. A command that never ran has no exit code.
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
        own_network: bool = False,
        gate: int | None = None,
    ) -> None:
        self.tier = tier
        self.argv = argv
        self.environment = environment
        self.inherited = inherited
        self.status = status
        """The end of a pipe to read the status from."""
        self.lifeline = lifeline
        """The end of a pipe that nothing is written to. The command ends when it is closed, or this process dies."""
        self.own_processes = own_processes
        """Whether child-pid is the first process of a namespace. The kernel then ends all others with it."""
        self.own_network = own_network
        """Whether no other command shares the network of child-pid."""
        self._gate = gate
        """The end of a pipe. The command begins when it is closed. None: it begins at once."""
        self._open = {*inherited, status, lifeline, *(() if gate is None else (gate,))}

    def close_child_ends(self) -> None:
        """Close the inherited descriptors here. Call it after the start."""
        self._close(self.inherited)

    def open_gate(self) -> None:
        """Let the command begin."""
        if self._gate is not None:
            self._close((self._gate,))

    def drop_lifeline(self) -> None:
        """Close the lifeline, which ends the command."""
        self._close((self.lifeline,))

    def close(self) -> None:
        self._close(tuple(self._open))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _close(self, descriptors: Iterable[int]) -> None:
        """Close each descriptor once only: afterwards another file may have its number."""
        for descriptor in descriptors:
            if descriptor in self._open:
                self._open.discard(descriptor)
                os.close(descriptor)
