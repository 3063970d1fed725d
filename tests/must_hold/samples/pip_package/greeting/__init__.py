"""Greets."""


def main() -> None:
    print("hello from a wheel")
