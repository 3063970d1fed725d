"""Commands in a layer over 50,000 files: a preview against the same command at tier 2, what 1,000 changed files cost to
list, to keep and to take back, and how much room is taken by what they were before."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.layers.many import many_files
from bench.layers.one import one_file
from bench.layers.tree import make_tree
from bench.measure import Row


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        workspace, state = Path(folder, "workspace"), Path(folder, "state")
        make_tree(workspace)
        yield from one_file(workspace, state)
        yield from many_files(workspace, state, Path(folder, "copies"))
