"""What a command's exit says, and how a command stops early."""

OK = 0
FAILED = 1
USAGE = 2
WAITING = 3
INFRASTRUCTURE = 4
LIMIT = 5
INTERRUPTED = 130


class CommandFailed(Exception):  # noqa: N818  not always an error: a session that is not there is an answer
    """Ends the command with a message for the person: what happened, the value, what to do next."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code
