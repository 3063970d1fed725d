"""How names and counts are written for people and models."""


def shown_name(path: str) -> str:
    """A name as text: bytes that are none, and control characters, are made visible."""
    if path.isprintable():
        return path
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in path)


def counted(number: int, noun: str) -> str:
    """1 file, 2,000 files, 3 matches."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('ch') else 's'}"
