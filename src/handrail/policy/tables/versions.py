"""Programs that may do anything, but not when they are only asked for their version.

Not here are those that look at the workspace first, to choose the version that answers (cargo, rustc, go, yarn) or to
read their settings (npm, php), and those that leave something behind (java).
"""

from handrail.policy.tables.form import ProgramSpec

_DASHED = (
    "bash zsh cc c++ gcc g++ clang clang++ make cmake ninja curl wget deno node perl pip pip3 python python2 python3 "
    "ruby ruff uv lua sqlite3 gdb tar gawk psql"
)
_PYTHONS = tuple(f"python3.{minor}" for minor in range(8, 16))
_SHORT = "node -v,python -V,python2 -V,python3 -V,perl -v,ruby -v,lua -v,make -v,pip -V,pip3 -V"

VERSIONS = (
    ProgramSpec(
        name="python3 --version",
        also=tuple(
            sorted(
                {f"{name} --version" for name in (*_DASHED.split(), *_PYTHONS)} - {"python3 --version"}
                | {f"{name} -V" for name in _PYTHONS}
                | {*_SHORT.split(",")}
            )
        ),
        operands=None,
        match=("python3 --version", "node -v", "python3.11 -V", "make -v", "gcc --version"),
        no_match=(
            "python3 --version -c x", "node -v x.js", "python3 -c x --version", "cargo --version",
            "node x.js --version", "bash --version -c id", "python3 -VV", "yarn --version",
            "gcc --version --wrapper=x a.c", "curl --version x", "npm --version",
            "java -version", "go version", "rustc --version",
        ),
    ),
)  # fmt: skip
