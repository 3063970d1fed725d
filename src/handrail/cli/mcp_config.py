"""mcp --config."""

from argparse import Namespace

from handrail.cli.exits import Stop


def run(options: Namespace) -> int:
    """Not there yet."""
    raise Stop(f"--config {options.config} is not there yet")
