"""find and grep in the trees that HANDRAIL_BENCH_TREES lists, separated by colons, against the bare program.

They should be repositories, so that rg obeys their ignore files. Their files have to contain WORDS.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Row
from bench.search import COMMON_RATIO, FIND_RATIO, REAL_RATIO, measure_tree
from handrail.workspace.search.ripgrep import find_ripgrep

WORDS = ("idempotent", r"idempot\w+")


def rows() -> Iterator[Row]:
    trees = [Path(path) for path in os.environ.get("HANDRAIL_BENCH_TREES", "").split(":") if path]
    if not trees:
        print("bench: HANDRAIL_BENCH_TREES names no trees", file=sys.stderr)
    program = find_ripgrep([str(tree) for tree in trees])
    if program is None:
        raise AssertionError("there is no rg to compare with")
    for tree in trees:
        with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
            limits = (FIND_RATIO, REAL_RATIO, COMMON_RATIO)
            yield from measure_tree(tree.name, tree, Path(folder), program, limits, WORDS)
