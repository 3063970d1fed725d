"""mcp --http."""

from argparse import Namespace

from handrail.cli.exits import Stop


def run(options: Namespace) -> int:
    """Not there yet."""
    raise Stop(f"--http {options.http} is not there yet")
