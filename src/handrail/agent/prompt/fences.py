"""Marks where a text that others wrote begins and ends, so that it cannot pass for a part of the prompt."""

import re


def fence_text(tag: str, text: str, **attributes: str) -> str:
    """The text between two marks, neither of which can stand in it."""
    given = "".join(f' {name}="{value}"' for name, value in attributes.items())
    inner = re.sub(rf"<(\s*/?\s*{re.escape(tag)})", r"‹\1", text.strip("\n"), flags=re.IGNORECASE)
    return f"<{tag}{given}>\n{inner}\n</{tag}>"
