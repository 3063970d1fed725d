"""Standard input and output, taken for the protocol alone."""

import os


def take_streams(nowhere: int) -> tuple[int, int]:
    """Takes standard input and output away from everything else in this process and its children: what they print
    goes to stderr, what they read is empty. `nowhere`: /dev/null, open both ways. The two descriptors are inherited
    by nobody. OSError where one of the two is closed."""
    source, sink = os.dup(0), os.dup(1)
    os.dup2(nowhere, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # whoever started us closed it
        os.dup2(nowhere, 1)
    return source, sink
