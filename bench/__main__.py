"""python -m bench [NAME…] [--json]: runs the benchmarks, all or the named ones; exit 1 when a limit is missed."""

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import cast

from bench import BENCHMARKS
from bench.measure import Row, table


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measures the installed wheel.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(BENCHMARKS)}; without: all")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    options = parser.parse_args()
    names = cast("list[str]", options.names)
    if unknown := [name for name in names if name not in BENCHMARKS]:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}")
    rows = list(run(names or list(BENCHMARKS)))
    if options.json:
        print(json.dumps({"rows": [row._asdict() | {"verdict": row.verdict} for row in rows]}, indent=2))
    else:
        print(table(rows))
    return 1 if any(row.verdict == "missed" for row in rows) else 0


def run(names: list[str]) -> Iterator[Row]:
    for name in names:
        print(f"bench: {name}", file=sys.stderr)
        benchmark = importlib.import_module(f"bench.{name}")
        rows = cast("Callable[[], Iterator[Row]]", benchmark.rows)
        for row in rows():
            yield row._replace(name=f"{name}: {row.name}")


if __name__ == "__main__":
    sys.exit(main())
