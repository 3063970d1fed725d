"""Callbacks of a permission prompt."""

from collections.abc import Callable

import msgspec

from handrail.protocol.permissions import PermissionRequest


def _always(_: PermissionRequest) -> bool:
    return True


def _unchanged(_: PermissionRequest) -> tuple[str, ...]:
    return ()


class RequestHooks(msgspec.Struct, frozen=True):
    """Whether a request is still pending, which files changed since its preview, and how to retry it."""

    still_open: Callable[[PermissionRequest], bool] = _always
    outdated: Callable[[PermissionRequest], tuple[str, ...]] = _unchanged
    retry: Callable[[str, str | None], PermissionRequest] | None = None
    """Previews the request of this id again, also with another command. Returns the new request."""


NO_HOOKS = RequestHooks()
"""For a request that is answered only here and cannot be retried."""
