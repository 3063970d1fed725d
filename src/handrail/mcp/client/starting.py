"""Starts a server's program in a thread, which cannot be called off on its way."""

import threading

from handrail.runtime.foreign.server_process import ServerProgram, ServerPrograms, ServerProgramSpec


class ProgramStart:
    """One start. A program that comes when nobody waits for it any more is ended at once: nobody else knows of it."""

    def __init__(self, programs: ServerPrograms, wanted: ServerProgramSpec) -> None:
        self._programs, self._wanted = programs, wanted
        self._lock = threading.Lock()
        self._program: ServerProgram | None = None
        self._given_up = False

    def run(self) -> None:
        """Takes as long as it takes; ToolError where it cannot be started."""
        program = self._programs.start(self._wanted)
        with self._lock:
            self._program = program
            late = self._given_up
        if late:
            program.end()

    def take(self) -> ServerProgram | None:
        """The program, which is the caller's from here on; None where there is none, and then nobody waits for it."""
        with self._lock:
            self._given_up = self._program is None
            return self._program
