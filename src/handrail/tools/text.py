"""Text that results of several tools share."""

MAX_TEXT_BYTES = 32 * 1024 * 1024
"""Largest text and file that a tool edits: several copies of it are in memory."""
