"""Areas."""


def square(side: float) -> float:
    return side * side
