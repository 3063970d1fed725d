"""A shop."""

from __future__ import annotations

import json as data
import os.path
from decimal import Decimal
from .stock import Item, count as count_items

LIMIT: int = 3
names, prices = [], {}


class Shop(Base, metaclass=Meta):
    """Sells things.

    All day.
    """

    open_at: int = 9

    def __init__(self, name: str, *items: Item, **options) -> None:
        self.name = name

    @property
    async def total(self) -> Decimal:
        # sums prices
        if self.name:
            for item in self.items:
                yield item
        elif LIMIT:
            return 0

    class Till:
        def ring(self): ...


# Opens a shop.
def open_shop(
    name,
    day="Monday",
):
    try:
        return Shop(name)
    except OSError:
        return None
    # the end
