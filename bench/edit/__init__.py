"""Edits: how fast they are (`rows`, as every benchmark has them), and how often they are right.

Cases are made from the history of any git repository, misquoted the way models misquote, and scored by the bytes of
the file: `scripts/edit-cases make` and `scripts/edit-cases score`.
"""

from bench.edit.speed import rows

__all__ = ["rows"]
