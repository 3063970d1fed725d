"""Checks the order of the house: which room may import which, and who may touch the disk.

A room is a folder or module of src/handrail. The order stands in pyproject.toml, `[tool.handrail.house] order`, lowest
first: a room imports only rooms before it, rooms in one string never import each other. The code is read, never run.

    python scripts/house.py            the rooms by level, and the faults
    python scripts/house.py --check    only the faults; exit 1 if there is one
"""

import argparse
import ast
import graphlib
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PACKAGE = "handrail"

# These open no file and start no process (requirement D-8): they use a tool, `workspace/`, or a spawner handed to them.
HANDS_OFF = frozenset(("agent", "dialects", "skills", "mcp", "acp", "server", "cli"))
HANDS = re.compile(
    r"(open|(io|codecs)\.open|fileinput|glob|multiprocessing|pathlib|pty|shutil|subprocess|tempfile"
    r"|asyncio\.(subprocess|create_subprocess_\w+)"
    r"|os\.(open|fdopen|popen|system|fork\w*|exec\w*|spawn\w*|posix_spawn\w*|startfile)"
    r"|os\.(listdir|scandir|f?walk|mkdir|makedirs|remove\w*|rename\w*|replace|rmdir|link|symlink|truncate|unlink))(\..*)?"
)
# Modules of those rooms that may nevertheless, each with the reason: "cli/schema.py": "writes `schema --out DIR`".
HANDS_ALLOWED: Mapping[str, str] = {
    "cli/files.py": "reads and writes what options name, and opens /dev/null when nobody reads the output",
    "cli/host_files.py": "reads and writes the settings of the client that `mcp --config` names",
    "cli/demonstration/folder.py": "makes the temporary sample of the demo, and removes it",
}

# These compute and nothing else: no I/O, no clock, no chance, no environment.
PURE = frozenset(("protocol", "edit", "policy"))
IMPURE = re.compile(
    r"(open|asyncio|codecs\.open|ctypes|fileinput|glob|io|multiprocessing|os|pathlib|pty|random|secrets|select|shutil|signal"
    r"|socket|sqlite3|subprocess|tempfile|_thread|threading|time)(\..*)?"
)
# Modules of those rooms that may nevertheless, each with the reason.
PURE_ALLOWED: Mapping[str, str] = {
    "protocol/reading.py": "has a lock: threads that give msgspec a type for the first time at once end the process",
}


class Import(NamedTuple):
    target: str
    line: int
    at_start: bool  # runs when the module is loaded: neither inside a function nor under TYPE_CHECKING


class Module(NamedTuple):
    path: str
    name: str
    room: str
    tree: ast.Module
    imports: list[Import]


def faults(root: Path, order: list[str], allowed: Mapping[str, str] = HANDS_ALLOWED) -> list[str]:
    """Every fault below root/src/handrail, one line each: `path:line: what is wrong`."""
    modules, found = read(root)
    levels = {room: level for level, rooms in enumerate(order) for room in rooms.split()}
    found += unknown_rooms(modules, levels)
    for module in modules:
        found += wrong_ways(module, levels)
        path = module.path.removeprefix(f"src/{PACKAGE}/")
        if module.room in PURE and path not in PURE_ALLOWED:
            found += touches(module, IMPURE, "is pure")
        if module.room in HANDS_OFF and path not in allowed:
            found += touches(module, HANDS, "opens no file and starts no process")
    return found + rings(modules)


def read(root: Path) -> tuple[list[Module], list[str]]:
    modules: list[Module] = []
    unreadable: list[str] = []
    for file in sorted((root / "src" / PACKAGE).rglob("*.py")):
        path = file.relative_to(root).as_posix()
        parts = file.relative_to(root / "src").with_suffix("").parts
        try:
            tree = ast.parse(file.read_bytes())
        except SyntaxError as error:
            unreadable.append(f"{path}:{error.lineno or 1}: cannot be parsed: {error.msg}")
            continue
        name = ".".join(parts).removesuffix(".__init__")
        modules.append(Module(path, name, parts[1], tree, list(imports(tree, parts[:-1]))))
    return modules, unreadable


def imports(node: ast.AST, package: tuple[str, ...], *, at_start: bool = True) -> Iterator[Import]:
    """All imports below a node, also those by `import_module("a.b")`; relative ones made absolute."""
    for child in ast.iter_child_nodes(node):
        for target in targets(child, package):
            yield Import(target, getattr(child, "lineno", 1), at_start)
        if isinstance(child, ast.If) and is_type_checking(child.test):
            yield from imports(ast.Module(child.body, []), package, at_start=False)
            yield from imports(ast.Module(child.orelse, []), package, at_start=at_start)
        else:
            later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports(child, package, at_start=at_start and not later)


def targets(node: ast.AST, package: tuple[str, ...]) -> list[str]:
    match node:
        case ast.Import(names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module, names, level):
            above = package[: len(package) - (level - 1)] if level else ()
            start = ".".join([*above, *([module] if module else [])])
            return [f"{start}.{alias.name}" for alias in names]
        case ast.Call(
            ast.Name("__import__" | "import_module") | ast.Attribute(attr="import_module"),
            [ast.Constant(str(name)), *_],
        ):
            return [name]
        case _:
            return []


def is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test).rpartition(".")[2] == "TYPE_CHECKING"


def unknown_rooms(modules: list[Module], levels: dict[str, int]) -> list[str]:
    first = {module.room: module.path for module in reversed(modules) if module.room not in levels}
    return [f"{path}:1: room {room} is not in the order ([tool.{PACKAGE}.house])" for room, path in first.items()]


def wrong_ways(module: Module, levels: dict[str, int]) -> Iterator[str]:
    for target, line, _ in module.imports:
        package, _, rest = target.partition(".")
        if package != PACKAGE:
            continue
        room = rest.partition(".")[0]
        if room not in levels and "." not in rest:
            room = "__init__"  # a name that the package itself offers: `from handrail import Handrail`
        if module.room != room and module.room in levels and room in levels and levels[room] >= levels[module.room]:
            yield f"{module.path}:{line}: {module.room} may not import {room} (from {target})"


def touches(module: Module, banned: re.Pattern[str], rule: str) -> Iterator[str]:
    for target, line, _ in module.imports:
        if banned.fullmatch(target):
            yield f"{module.path}:{line}: {module.room} {rule}, but imports {target}"
    for name, line in names(module.tree):
        # Where the import is a fault already, its uses are not told again.
        if banned.fullmatch(name) and not banned.fullmatch(name.rpartition(".")[0]):
            yield f"{module.path}:{line}: {module.room} {rule}, but uses {name}"


def names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The built-in open, and attributes of modules by the module's own name, with their lines."""
    imported = [alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    modules = {alias.asname or alias.name: alias.name for alias in imported}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name(of), name):
                yield f"{modules.get(of, of)}.{name}", node.lineno
            case ast.Name("open", ast.Load()):
                yield "open", node.lineno
            case _:
                pass


def rings(modules: list[Module]) -> list[str]:
    """Modules that need each other to load; of rings that share an import, one."""
    by_name = {module.name: module for module in modules}
    graph: dict[str, dict[str, int]] = {
        module.name: {
            name: line
            for target, line, at_start in reversed(module.imports)
            if at_start and (name := target if target in by_name else target.rpartition(".")[0]) in by_name
        }
        for module in modules
    }
    found: list[str] = []
    while ring := one_ring(graph):
        line = graph[ring[0]].pop(ring[1])
        found.append(f"{by_name[ring[0]].path}:{line}: import ring: {' → '.join(ring)}")
    return found


def one_ring(graph: dict[str, dict[str, int]]) -> list[str]:
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1][::-1]
    return []


def show(root: Path, order: list[str]) -> None:
    """The rooms there are, the highest level first, with their number of modules."""
    modules, _ = read(root)
    present = [module.room for module in modules]
    for level, rooms in reversed(list(enumerate(order))):
        if here := [f"{room} {present.count(room)}" for room in rooms.split() if room in present]:
            print(f"{level:>3}  {' · '.join(here)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only the faults; exit 1 if there is one")
    check: bool = parser.parse_args().check
    root = Path(__file__).resolve().parent.parent
    order: list[str] = tomllib.loads((root / "pyproject.toml").read_text())["tool"][PACKAGE]["house"]["order"]
    if not check:
        show(root, order)
    found = faults(root, order)
    print("\n".join(found), end="\n" if found else "")
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
