"""What the two texts of an edit are called, where a refusal speaks of them."""

from typing import NamedTuple


class Wording(NamedTuple):
    """The words of the call that is refused."""

    old: str = "oldText"
    new: str = "newText"
    every: str = "set replaceAll"
    """How to ask for all places."""


OF_EDIT = Wording()
