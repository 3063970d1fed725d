"""Plays a session with a scripted model on a pseudo-terminal, and renders its screens as one animated SVG."""

import html
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.chat.window import Window

TARGET = Path(__file__).resolve().parent.parent / "docs" / "assets" / "chat.svg"
COLUMNS, ROWS = 84, 26
FRAME_SECONDS = 3.5
_CHAR, _LINE, _PAD = 8.4, 18, 14
_FILES = {
    "src/total.py": "from decimal import Decimal\n\n\ndef total(prices):\n    return round(sum(prices), 2)\n",
    "src/tax.py": "RATE = 0.2\n",
    "tidy.sh": (
        "sed -i 's/round(sum(prices), 2)/sum(prices, Decimal(0))/' src/total.py\n"
        "sed -i 's/0.2/Decimal(\"0.2\")/' src/tax.py\nrm -f src/old.py\necho '2 files tidied'\n"
    ),
    "src/old.py": "# not used\n",
}
_SCRIPT = [
    {
        "text": "The total is rounded in **one place**. I look, then I run `tidy.sh`.",
        "calls": [["grep", {"pattern": "round\\(", "path": "src"}]],
    },
    {"calls": [["exec", {"command": "sh tidy.sh"}]]},
    {"text": "Prices are decimals now:\n\n- `src/total.py` sums without rounding\n- `src/old.py` is gone"},
]
_VARIABLE = (
    (re.compile(r"\S*/shop\b"), "~/shop"),
    (re.compile(r"scripted:\S*"), "scripted:demo"),
    (re.compile(r"session s_[0-9a-f]+"), "session s_1"),
)
"""What differs from run to run."""
_USUAL = "0.1 s"
_DURATION = re.compile(r"\b\d+(\.\d+)? s\b")


class Span(NamedTuple):
    """A piece of a row in one style."""

    text: str
    style: str


Frame = list[list[Span]]


def record() -> list[Frame]:
    """The screens of a session."""
    with tempfile.TemporaryDirectory(prefix="handrail-recording-") as folder:
        workspace = Path(folder, "shop")
        for name, text in _FILES.items():
            path = workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        script = Path(folder, "script.json")
        script.write_text(json.dumps(_SCRIPT))
        variables = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "HOME": folder,
            "HANDRAIL_STATE_DIR": str(Path(folder, "state")),
            "TERM": "xterm-256color",
            "PYTHONUTF8": "1",
        }
        command = [sys.executable, "-m", "handrail", "chat", "--session", "s_1", "--model", f"scripted:{script}"]
        window = Window.open(command, workspace, variables, COLUMNS, ROWS)
        try:
            return _play(window)
        finally:
            window.close()


def render_text(frames: list[Frame]) -> str:
    """The text of the frames."""
    return "\n\n".join("\n".join("".join(span.text for span in row) for row in frame) for frame in frames)


def render_svg(frames: list[Frame]) -> str:
    """One picture that shows a frame after the other."""
    width, height = int(COLUMNS * _CHAR + 2 * _PAD), ROWS * _LINE + 2 * _PAD
    total, share = len(frames) * FRAME_SECONDS, 100 / len(frames)
    style = (
        "text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#d7dae0;white-space:pre}"
        ".g{fill:#7fc97f}.r{fill:#f08080}.y{fill:#e0c060}.c{fill:#70c0d0}.b{font-weight:bold}.d{fill:#8a909c}"
        f".f{{visibility:hidden;animation:f {total:g}s step-end infinite}}"
        f"@keyframes f{{0%{{visibility:visible}}{share:.4f}%{{visibility:hidden}}}}"
    )
    groups = [_render_frame(frame, number * FRAME_SECONDS - total) for number, frame in enumerate(frames)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-label="A session of handrail chat">\n'
        f"<style>{style}</style>\n"
        f'<rect width="100%" height="100%" rx="8" fill="#1d2027"/>\n{"".join(groups)}</svg>\n'
    )


def read_text(svg: str) -> str:
    """The text of the frames in a picture."""
    frames = re.findall(r'<g class="f".*?</g>', svg, re.DOTALL)
    rows = [re.findall(r"<text[^>]*>(.*?)</text>", frame) for frame in frames]
    texts = [[html.unescape(re.sub(r"<[^>]+>", "", row)) for row in frame] for frame in rows]
    return "\n\n".join("\n".join(frame) for frame in texts)


def main(words: list[str]) -> int:
    if words not in (["--write"], ["--check"]):
        print("usage: scripts/recording --write | --check", file=sys.stderr)
        return 2
    frames = record()
    if words == ["--write"]:
        TARGET.write_text(render_svg(frames), encoding="utf-8")
        print(f"wrote {os.path.relpath(TARGET)}")
        return 0
    if render_text(frames) != read_text(TARGET.read_text(encoding="utf-8")):
        print("docs/assets/chat.svg is out of date: scripts/recording --write", file=sys.stderr)
        return 1
    return 0


def _play(window: Window) -> list[Frame]:
    frames: list[Frame] = []

    def keep() -> None:
        frames.append(_read_frame(window))

    window.sees("session s_1")
    window.is_ready()
    window.press("keep prices as decimals")
    window.sees("› keep prices as decimals")
    keep()
    window.press(b"\r")
    window.sees("later (stays in")
    keep()
    window.answers(b"y", "undo 1")
    window.sees("Done ·")
    window.is_ready()
    keep()
    window.press("/undo")
    window.sees("› /undo")
    window.press(b"\r")
    window.sees("✓ undo")
    window.is_ready()
    keep()
    return frames


def _read_frame(window: Window) -> Frame:
    frame = [_split_spans(_set_duration(row)) for row in window.cells]
    while frame and not frame[-1]:
        frame.pop()
    return frame


def _set_duration(row: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The row with the same duration in every recording. The outcome of a call stays at the right."""
    text = "".join(char for char, _ in row)
    found = _DURATION.search(text)
    if found is None:
        return row
    start, end = found.span()
    shorter = end - start - len(_USUAL)
    usual = [(char, row[start][1]) for char in _USUAL]
    edge = text.rfind("│")
    if edge > end:  # in a frame
        return [*row[:start], *usual, *row[end:edge], *[(" ", "")] * shorter, *row[edge:]]
    gap = text.rfind("   ", 0, start) + 1
    return [*row[:gap], *[(" ", "")] * (shorter if gap else 0), *row[gap:start], *usual, *row[end:]]


def _split_spans(row: list[tuple[str, str]]) -> list[Span]:
    """The pieces of a row in one style, without blanks at its end."""
    spans: list[Span] = []
    for char, style in row:
        if spans and spans[-1].style == style:
            spans[-1] = spans[-1]._replace(text=spans[-1].text + char)
        else:
            spans.append(Span(char, style))
    while spans and not spans[-1].text.strip():
        spans.pop()
    for number, span in enumerate(spans):
        text = span.text.rstrip() if number == len(spans) - 1 else span.text
        for pattern, replacement in _VARIABLE:
            text = pattern.sub(replacement, text)
        spans[number] = span._replace(text=text)
    return spans


def _render_frame(frame: Frame, delay: float) -> str:
    rows = [_render_row(row, _PAD + (number + 1) * _LINE - 4) for number, row in enumerate(frame)]
    return f'<g class="f" style="animation-delay:{delay:g}s">\n{"".join(rows)}</g>\n'


def _render_row(row: list[Span], top: int) -> str:
    pieces = [
        f'<tspan class="{span.style}">{html.escape(span.text)}</tspan>' if span.style else html.escape(span.text)
        for span in row
    ]
    return f'<text x="{_PAD}" y="{top}" xml:space="preserve">{"".join(pieces)}</text>\n'


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
