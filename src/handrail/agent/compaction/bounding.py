"""Texts and lists made to fit, with what was left out said."""

from collections.abc import Sequence

from handrail.protocol.text import truncate


def keep_ends(text: str, most: int) -> str:
    """The text, or its beginning and its end with the number of characters left out."""
    text = text.strip()
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    return f"{text[:head]} […{len(text) - head - tail:,} characters left out…] {text[len(text) - tail :]}"


def clip_line(text: str, most: int) -> str:
    """The beginning of a text on one line. It reads only `4 * most` characters: the text may be huge."""
    return truncate(" ".join(text[: 4 * most].split()), most)


def keep_newest(lines: Sequence[str], most: int, left_out: str) -> list[str]:
    """The last of the lines, as many as have room; `left_out` says how many are missing, in the place of `{}`."""
    kept: list[str] = []
    for line in reversed(lines):
        most -= len(line) + 1
        if most < 0:
            break
        kept.append(line)
    missing = len(lines) - len(kept)
    return [*([left_out.format(missing)] if missing else []), *reversed(kept)]


def format_ranges(numbers: Sequence[int]) -> str:
    """`3, 5–9`."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in found)
