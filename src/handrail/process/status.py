"""What the launched program says of the command: which process it is, and how it ended."""

import os
import re

_MAX_STATUS_BYTES = 1 << 16
# Two numbers are all that is looked for: a keeper, which reads a status too, starts without what decodes JSON.
_SAID = re.compile(rb'[{,]\s*"(child-pid|exit-code)"\s*:\s*([0-9]{1,10})\s*[,}]')


class Status:
    """The status so far. Each thing is believed once: nobody says it twice who means it."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.child_pid: int | None = None
        self.exit_code: int | None = None
        self.over = False
        """Whether nothing more can come."""
        self._rest = b""

    def read(self) -> None:
        """Takes in what there is by now."""
        while not self.over:
            try:
                data = os.read(self.descriptor, _MAX_STATUS_BYTES)
            except BlockingIOError:
                return
            self.over = not data or len(self._rest) > _MAX_STATUS_BYTES
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in [*lines, self._rest] if self.over else lines:
                self._believe(line)

    def _believe(self, line: bytes) -> None:
        said = {name: int(number) for name, number in _SAID.findall(line)}
        if self.child_pid is None:
            self.child_pid = said.get(b"child-pid")
        if self.exit_code is None:
            self.exit_code = said.get(b"exit-code")
