"""What a question comes from, for as long as it is on a terminal."""

from collections.abc import Callable

import msgspec

from handrail.protocol.permissions import Answer, PermissionRequest


def _always(_: PermissionRequest) -> bool:
    return True


def _unchanged(_: PermissionRequest) -> tuple[str, ...]:
    return ()


class RequestHooks(msgspec.Struct, frozen=True):
    """How whoever asks finds out what has become of the request meanwhile, and has it tried again."""

    still_open: Callable[[PermissionRequest], bool] = _always
    """Whether nobody else has answered it."""
    outdated: Callable[[PermissionRequest], tuple[str, ...]] = _unchanged
    """The files that changed since it was tried."""
    retry: Callable[[str, str | None], PermissionRequest] | None = None
    """Tries the request of this id again, also as another command: the request that takes its place."""


NO_HOOKS = RequestHooks()
"""Of a question that nobody else answers, and that cannot be tried again."""


class PromptResult(msgspec.Struct, frozen=True):
    """What came of a question."""

    request: PermissionRequest
    """The one that was on the terminal in the end: it may have been tried again."""
    answer: Answer | None = None
    """None when there is none: left for later, answered elsewhere, or the terminal is gone."""
