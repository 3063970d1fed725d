"""The command line: arguments and rendering, nothing else."""
