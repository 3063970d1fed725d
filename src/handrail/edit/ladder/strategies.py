"""The names of the strategies, in the order they are tried, and what each forgives."""

from handrail.edit.ladder.fitting import Tolerance

FORGIVEN = {
    "line-trimmed": "white space around lines",
    "indentation-flexible": "the indentation",
    "trimmed-boundary": "white space around it",
    "whitespace-normalised": "white space",
    "typography": "characters that look alike",
    "line-numbers": "line numbers",
    "code-fences": "code fences around it",
    "escape-normalised": "escaped characters",
    "elision": "lines that were left out",
    "context-aware": "words of lines that stay",
    "block-anchor": "words of lines that change",
}
"""Those behind `exact`, which forgives nothing."""

NAMES = {
    Tolerance.NOTHING: "trimmed-boundary",
    Tolerance.LINE_ENDS: "line-trimmed",
    Tolerance.BOTH_SIDES: "line-trimmed",
    Tolerance.BOUNDARY: "trimmed-boundary",
    Tolerance.WHITE_SPACE: "whitespace-normalised",
    Tolerance.TYPOGRAPHY: "typography",
}
"""What a place that needs so much forgiven was found by; one that is only moved is indentation-flexible.

Lines that need nothing forgiven were not found as they are because of the newline behind the last of them.
"""
