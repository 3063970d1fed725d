"""What a session will list, for who asks before there is one.

A client that starts the server waits for its tools. To open a session, load the tools and make their schemas takes
longer than all that comes before; so the list is made when they are written, and the rest is done behind the answer.
"""

import msgspec

from handrail.settings.model import Settings, Tools

_DEFAULT = Tools()


def find_default_tools(settings: Settings) -> dict[str, msgspec.Raw] | None:
    """The entries of our tools by name, ready for the wire. None where the settings say anything about tools: then
    only a session knows what it offers."""
    if settings.tools != _DEFAULT:
        return None
    from handrail.mcp.listed import LISTED  # noqa: PLC0415  large, and asked for once

    return {name: msgspec.Raw(entry) for name, entry in LISTED.items()}
