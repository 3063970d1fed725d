"""Programs that may do anything, but not when they are only asked for their version.

Not here are those that look at the workspace first, to choose the version that answers: cargo, rustc, go, yarn.
"""

from handrail.policy.tables.form import Table

_DASHED = (
    "bash clang clang++ cmake curl docker g++ gcc java javac make ninja node npm npx perl pip pip3 python python2 "
    "python3 "
    "ruby ruff uv wget"
)
_SHORT = (
    "node -v,npm -v,python -V,python2 -V,python3 -V,java -version,javac -version,perl -v,ruby -v,gcc -v,pip -V,pip3 -V"
)

TABLES = (
    Table(
        name="python3 --version",
        also=tuple(
            sorted({f"{name} --version" for name in _DASHED.split()} - {"python3 --version"} | {*_SHORT.split(",")})
        ),
        operands=None,
        match=("python3 --version", "node -v", "npm --version", "java -version", "gcc --version"),
        no_match=(
            "python3 --version -c x", "node -v x.js", "python3 -c x --version", "cargo --version",
            "node x.js --version", "bash --version -c id", "python3 -VV", "yarn --version",
            "gcc --version --wrapper=x a.c", "curl --version x",
        ),
    ),
)  # fmt: skip
