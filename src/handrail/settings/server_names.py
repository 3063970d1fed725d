"""What a server may be called: its name is part of what its tools are called."""

import re

from handrail.protocol.tool import OWN_SERVER

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_)){0,47}(?<!_)")
NAME_IN_WORDS = (
    "letters, digits, - and single _, at most 48, beginning with a letter or digit, not ending with _; and not"
    " handrail, as whose own its tools would be shown"
)


def is_server_name(name: str) -> bool:
    """Whether a server may be called so. Without `__` its tools' names can be taken apart again; and those of one that
    is called as we are would be shown to people as ours."""
    return _NAME.fullmatch(name) is not None and name.casefold() != OWN_SERVER
