"""Why a place that is known is not changed."""

from handrail.edit.matching import Span


class UnsafeError(Exception):
    """The place is known, but not what the edit would make of it."""


class RefusedError(Exception):
    """There is a place, but the edit cannot be made there without a guess."""

    def __init__(self, span: Span, reason: str) -> None:
        super().__init__(reason)
        self.span = span
