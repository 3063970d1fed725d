"""The library called wrongly: said at once, in words."""

from collections.abc import Callable
from typing import Any

import pytest

from handrail import Handrail, UsageError

Open = Callable[..., Handrail]


def plain_function(text: str) -> str:
    """Not declared as a tool."""
    return text


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"mode": "yolo"}, "'yolo'"),
        ({"deny": ["fs.wirte"]}, "'fs.wirte'"),
        ({"on_permission": 5}, "5"),
        ({"tools": [plain_function]}, "@tool"),
        ({"session": "../x"}, "'../x'"),
        ({"workspace": "/no/such/folder"}, "/no/such/folder"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_opened(rail: Open, options: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named.replace(".", r"\.")):
        rail(**options)
