"""Two real servers find the same definitions in a real package."""

import importlib.util
import io
import keyword
import os
import random
import shutil
import tokenize
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from projects import Make, choose, succeed

PACKAGE = "prompt_toolkit"
SAMPLES = 300


class Name(NamedTuple):
    """A name in a file of the package."""

    path: str
    line: int
    character: int
    text: str


def copy_package(workspace: Path) -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    shutil.copytree(Path(spec.origin).parent, workspace / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    (workspace / "pyproject.toml").write_text("[project]\nname = 'sample'\nversion = '1'\n")
    return workspace / PACKAGE


def list_names(workspace: Path) -> list[Name]:
    return [
        Name(str(path.relative_to(workspace)), token.start[0] - 1, token.start[1], token.string)
        for path in sorted(workspace.glob(f"{PACKAGE}/**/*.py"))
        for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline)
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string)
    ]


def simplify(file: str, line: int) -> tuple[str, int | None]:
    """A place. Outside of the workspace one server names the stub, another the source: only the module counts."""
    return (os.path.basename(file).partition(".")[0], None) if file.startswith("/") else (file, line)


def test_definitions_of_two_servers_agree_on_a_real_package(
    rail: Make, workspace: Path, count: Callable[[int], int], note: Callable[[str], None]
) -> None:
    copy_package(workspace)
    names = random.Random(32).sample(list_names(workspace), count(SAMPLES))
    answers: dict[str, list[set[tuple[str, int | None]]]] = {}
    for server in ("ty", "basedpyright"):
        opened = rail(session=server, settings=choose(server))
        calls = [{"path": name.path, "line": name.line, "character": name.character} for name in names]
        places = [succeed(opened.call("lsp_definition", call)).locations for call in calls]
        answers[server] = [{simplify(one.file, one.line) for one in some} for some in places]
    rows = zip(names, answers["ty"], answers["basedpyright"], strict=True)
    differ = [row for row in rows if row[1] != row[2] and not row[1] & row[2]]
    for name, ty, basedpyright in differ:
        note(f"{name}: ty {sorted(map(str, ty))}, basedpyright {sorted(map(str, basedpyright))}")
    agreed = 1 - len(differ) / len(names)
    note(f"{agreed:.1%} of {len(names)} definitions agree")
    assert agreed >= (0.95 if len(names) >= 200 else 0.8)
