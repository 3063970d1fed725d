"""How much two texts have in common at their ends."""

from typing import AnyStr


def count_common_start(one: AnyStr, other: AnyStr) -> int:
    """How many characters, or bytes, two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # halved, not walked: texts can be megabytes
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def count_common_end(one: str, other: str) -> int:
    """How many characters two texts end with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        same = one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]
        low, high = (middle, high) if same else (low, middle - 1)
    return low
