"""The outline of a file of 5,000 lines, as a call and as the parser alone."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Row, alternate
from handrail import Handrail
from handrail.code.symbols import list_symbols
from handrail.settings import Settings

LINES = 5_000
MILLISECONDS = 60.0
_CLASS = '''class Shop{number}(Base):
    """Sells things."""

    limit: int = {number}

    def total(self, day: int = 1, *more: str) -> int:
        """The sum of a day."""
        if day > self.limit and more:
            return sum(len(one) for one in more)
        return self.count(day, [day * 2, {{"a": day}}])

    def count(self, day: int, rows: list[int]) -> int:
        # counts rows
        try:
            for row in rows:
                day += row if row else 0
        except (ValueError, TypeError) as error:
            print(f"failed {{error}}")
        return day
'''


def rows() -> Iterator[Row]:
    block = [_CLASS.format(number=number) for number in range(LINES // _CLASS.count("\n"))]
    text = "\n".join(block)
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        (workspace / "large.py").write_text(text)
        settings = Settings.from_values({"tools.enable": ("code_outline",)})
        with Handrail(workspace, state_dir=Path(folder, "state"), settings=settings) as rail:

            def outline() -> None:
                if not rail.call("code_outline", {"path": "large.py"}).ok:
                    raise AssertionError("the outline failed: a fast error is no result")

            def parse() -> None:
                list_symbols(text.encode(), "python")

            samples = alternate({"outline": outline, "parse": parse})
    yield Row(f"code_outline of {text.count(chr(10)):,} lines", samples["outline"].median * 1e3, "ms", MILLISECONDS)
    yield Row("its definitions alone", samples["parse"].median * 1e3, "ms")
