"""What a server may be called: its name is part of what its tools are called."""

import re

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_)){0,47}(?<!_)")
NAME_IN_WORDS = "letters, digits, - and single _, at most 48, beginning with a letter or digit, not ending with _"


def is_server_name(name: str) -> bool:
    """Whether a server may be called so. Without `__` its tools' names can be taken apart again."""
    return _NAME.fullmatch(name) is not None
