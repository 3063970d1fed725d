"""The keeper and the supervisor start with `python -I -S`: no installed package can be imported there."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import handrail

SOURCE = Path(handrail.__file__).parents[1]
PROGRAMS = (
    "handrail.process.keeper.program",
    "handrail.sandbox.supervisor.program",
    "handrail.kernel.process",
    "handrail.sandbox.session_network",
)
BARE = """
import sys
package = type(sys)("handrail")
package.__path__ = [sys.argv[1]]
sys.modules["handrail"] = package
__import__(sys.argv[2])
"""


def imports_of(module: str) -> Iterator[str]:
    """Every module that a module imports, at the top or in a function."""
    path = SOURCE.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from [name for name in names if is_module(name)] or [node.module]


def is_module(name: str) -> bool:
    path = SOURCE.joinpath(*name.split("."))
    return name.startswith("handrail.") and (path.is_dir() or path.with_suffix(".py").is_file())


def closure_of(program: str) -> dict[str, str]:
    """Every module that a program may ever load, with the module that imports it."""
    found, left = {program: program}, [program]
    while left:
        module = left.pop()
        parents = [module.rpartition(".")[0]] if module.count(".") > 1 else []
        for name in (*imports_of(module), *parents):
            if name not in found:
                found[name] = module
                left += [name] if name.startswith("handrail.") else []
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_its_modules_import_nothing_but_the_standard_library(program: str) -> None:
    found = closure_of(program)
    outside = {
        name: by for name, by in found.items() if name.split(".")[0] not in {"handrail", *sys.stdlib_module_names}
    }
    assert not outside


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_loads_without_installed_packages(program: str) -> None:
    subprocess.run([sys.executable, "-I", "-S", "-c", BARE, str(SOURCE / "handrail"), program], check=True)
