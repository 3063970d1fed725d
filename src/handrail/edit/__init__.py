"""Edits of text: matching, diffs, patches. Pure: text in, text out."""
