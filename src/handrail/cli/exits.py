"""The exit codes of the command line."""

OK = 0
FAILED = 1
USAGE = 2
WAITING = 3
INFRASTRUCTURE = 4
LIMIT = 5
NOT_RUN = 125  # as with env: other codes are those of the command
INTERRUPTED = 130


class CommandFailed(Exception):  # noqa: N818  not always an error: a missing session is an answer
    """Ends the command with a message for the person and an exit code.

    The message says what failed and what was not done. `then` is empty if the help of the command is next.
    """

    def __init__(self, message: str, code: int = USAGE, *, then: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.then = then
