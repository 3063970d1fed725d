"""Texts and lists made to fit, with what was left out said."""

from collections.abc import Sequence


def bounded(text: str, most: int) -> str:
    """The text, or its beginning and its end with a word about what is not there."""
    text = text.strip()
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    return f"{text[:head]} […{len(text) - head - tail:,} characters left out…] {text[len(text) - tail :]}"


def one_line(text: str, most: int) -> str:
    """The beginning of the text in one line."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def newest(lines: Sequence[str], most: int, left_out: str) -> list[str]:
    """The last of the lines, as many as have room; `left_out` says how many are missing, in the place of `{}`."""
    kept: list[str] = []
    for line in reversed(lines):
        most -= len(line) + 1
        if most < 0:
            break
        kept.append(line)
    missing = len(lines) - len(kept)
    return [*([left_out.format(missing)] if missing else []), *reversed(kept)]


def ranges(numbers: Sequence[int]) -> str:
    """`3, 5–9`."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in found)
