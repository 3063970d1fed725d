"""What the methods of the library stand on: a session, and work in it that its end waits for."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from handrail.runtime.session import Session

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


class Entering:
    """Whatever has a session."""

    _session: Session

    def _enter(
        self, work: Callable[Parameters, Returned], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Returned:
        """Does something in the session."""
        raise NotImplementedError
