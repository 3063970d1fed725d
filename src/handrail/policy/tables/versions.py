"""Asking a program for its version, alone: that starts nothing but the program itself.

Left out on purpose: programs that read the folder they are started in before they answer. `go version` and what rustup
stands in for (rustc, cargo) may fetch or run the toolchain that a project names; npm, pnpm, yarn, gradle and mvn are
scripts with settings of the project; php loads its configuration, java writes its counters.
"""

from handrail.policy.tables.form import Table

_LONG = """
    python python2 python3 pypy3 node deno ruby perl lua gcc g++ cc c++ clang clang++ make cmake ninja bash zsh
    sqlite3 pip pip3 uv ruff gdb tar gawk psql
"""
_SHORT = ("python -V", "python3 -V", "node -v", "ruby -v", "perl -v", "lua -v", "make -v", "pip -V", "pip3 -V")
_PYTHONS = tuple(f"python3.{minor}" for minor in range(8, 16))


def _asks(name: str) -> Table:
    return Table(name=name, operands=None, match=(name,), no_match=(f"{name} x", f"{name} -c x"))


TABLES: tuple[Table, ...] = (
    *(_asks(f"{name} --version") for name in (*_LONG.split(), *_PYTHONS)),
    *(_asks(name) for name in (*_SHORT, *(f"{name} -V" for name in _PYTHONS))),
)
