"""Guards the structure of the code: imports, names, sizes, and which rooms may touch the disk.

A room is a folder or module of src/handrail. The order of rooms is in pyproject.toml, `[tool.handrail.house] order`,
lowest first: a room imports only rooms before it, rooms in one string never import each other. The code is read, never
run.

    python scripts/house.py            rooms by level, the corridor table, the faults
    python scripts/house.py --check    only the faults; exit 1 if there is one

scripts/house.toml lists exceptions by check. An exception that no longer applies is a fault too, so the lists only
shrink.
"""

import argparse
import ast
import re
import statistics
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
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
    "cli/files.py": "reads and writes what options name and client settings, and opens /dev/null",
    "cli/browser.py": "opens the person's browser at a private page with the token",
    "cli/commands/demo.py": "makes the temporary sample of the demo, and removes it",
}

# These compute and nothing else: no I/O, no clock, no chance, no environment.
PURE = frozenset(("protocol", "edit", "policy"))
IMPURE = re.compile(
    r"(open|asyncio|codecs\.open|ctypes|fileinput|glob|io|multiprocessing|os|pathlib|pty|random|secrets|select|shutil|signal"
    r"|socket|sqlite3|subprocess|tempfile|_thread|threading|time)(\..*)?"
)
# Modules of those rooms that may nevertheless, each with the reason.
PURE_ALLOWED: Mapping[str, str] = {
    "protocol/wire.py": "has a lock: threads that give msgspec a type for the first time at once end the process",
}


# The faces stand on the library, not on the rooms behind it.
FACES = frozenset(("cli", "mcp", "acp", "server"))
BEHIND_THE_LIBRARY = frozenset(
    ("edit", "policy", "kernel", "store", "workspace", "sandbox", "process", "changes", "code", "tools", "runtime")
)
MAX_FILE_LINES = 500
MAX_PUBLIC_NAMES = 15
SMALL_MODULE_LINES = range(6, 100)
Functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
IMPORTING = (ast.Import, ast.ImportFrom, ast.Call)


class Import(NamedTuple):
    target: str
    line: int
    is_late: bool  # inside a function


class Module(NamedTuple):
    path: str
    name: str
    room: str
    tree: ast.Module
    lines: int
    imports: list[Import]


class Offence(NamedTuple):
    """A fault of a check that has exceptions. `key` is what an exception says."""

    check: str
    key: str
    fault: str


Exceptions = Mapping[str, Sequence[str]]


def faults(
    root: Path, order: list[str], allowed: Mapping[str, str] = HANDS_ALLOWED, exceptions: Exceptions | None = None
) -> list[str]:
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
    return found + unexcepted(list(offences(modules)), exceptions or {})


def offences(modules: list[Module]) -> Iterator[Offence]:
    """What the checks with exceptions find."""
    yield from cycles(modules)
    yield from imports_past_the_library(modules)
    yield from twin_modules(modules)
    yield from twin_classes(modules)
    for module in modules:
        name = module.name.rpartition(".")[2]
        if name.endswith("ing"):
            yield Offence(
                "gerunds", short(module.name), f"{module.path}:1: a module is a noun of the field, not {name}"
            )
        if module.lines > MAX_FILE_LINES:
            fault = f"{module.path}:1: {module.lines} lines, at most {MAX_FILE_LINES}"
            yield Offence("long_files", short(module.name), fault)
        if (count := len(public_names(module))) > MAX_PUBLIC_NAMES:
            fault = f"{module.path}:1: {count} public names, at most {MAX_PUBLIC_NAMES}"
            yield Offence("crowded", short(module.name), fault)
        if problem := docstring_problem(module):
            yield Offence("docstrings", short(module.name), f"{module.path}:1: {problem}")


def unexcepted(found: list[Offence], exceptions: Exceptions) -> list[str]:
    """The faults that no exception allows, and the exceptions that allow nothing."""
    keys = {(one.check, one.key) for one in found}
    excepted = {(check, key) for check, some in exceptions.items() for key in some}
    left = [one.fault for one in found if (one.check, one.key) not in excepted]
    stale = sorted(excepted - keys)
    return left + [f"scripts/house.toml:1: {check}: {key} is no fault any more; remove it" for check, key in stale]


def short(name: str) -> str:
    return name.removeprefix(f"{PACKAGE}.")


def read(root: Path) -> tuple[list[Module], list[str]]:
    modules: list[Module] = []
    unreadable: list[str] = []
    for file in sorted((root / "src" / PACKAGE).rglob("*.py")):
        path = file.relative_to(root).as_posix()
        parts = file.relative_to(root / "src").with_suffix("").parts
        text = file.read_bytes()
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            unreadable.append(f"{path}:{error.lineno or 1}: cannot be parsed: {error.msg}")
            continue
        name = ".".join(parts).removesuffix(".__init__")
        modules.append(Module(path, name, parts[1], tree, text.count(b"\n"), imports(tree, parts[:-1])))
    return modules, unreadable


def imports(tree: ast.Module, package: tuple[str, ...]) -> list[Import]:
    """All imports of a module, also those for types and by `import_module("a.b")`; relative ones made absolute."""
    found: list[Import] = []
    left: list[tuple[ast.AST, bool]] = [(tree, False)]
    while left:
        node, is_late = left.pop()
        if isinstance(node, IMPORTING):
            found += [Import(target, node.lineno, is_late) for target in targets(node, package)]
        is_late = is_late or isinstance(node, Functions)
        left += [(child, is_late) for child in ast.iter_child_nodes(node)]
    return sorted(found, key=lambda one: one.line)


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


def needs(modules: list[Module]) -> dict[str, dict[str, int]]:
    """Which modules each module imports, at any time and for any reason, with the first line that does."""
    known = {module.name for module in modules}
    return {
        module.name: {
            name: line
            for target, line, _ in reversed(module.imports)
            if (name := target if target in known else target.rpartition(".")[0]) in known and name != module.name
        }
        for module in modules
    }


def cycles(modules: list[Module]) -> Iterator[Offence]:
    """Groups of modules that need each other, one fault each."""
    graph, by_name = needs(modules), {module.name: module for module in modules}
    for group in sorted(groups(graph)):
        first = by_name[group[0]]
        line = min(line for name, line in graph[first.name].items() if name in group)
        listed = ", ".join(map(short, group))
        yield Offence("cycles", listed, f"{first.path}:{line}: import cycle: {listed}")


def groups(graph: Mapping[str, Mapping[str, int]]) -> list[list[str]]:
    """The strongly connected parts of a graph that have more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in graph[module]:
            if other not in index:
                visit(other)
            if other in stack:
                low[module] = min(low[module], low[other])
        if low[module] == index[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    sys.setrecursionlimit(max(sys.getrecursionlimit(), 10 * len(graph)))
    for module in sorted(graph):
        if module not in index:
            visit(module)
    return found


def imports_past_the_library(modules: list[Module]) -> Iterator[Offence]:
    graph = needs(modules)
    for module in modules:
        for other, line in graph[module.name].items() if module.room in FACES else ():
            if other.split(".")[1:2] and other.split(".")[1] in BEHIND_THE_LIBRARY:
                key = f"{short(module.name)} → {short(other)}"
                yield Offence("past_the_library", key, f"{module.path}:{line}: a face imports past the library: {key}")


def twin_modules(modules: list[Module]) -> Iterator[Offence]:
    """Modules of one room that have the same name."""
    named: dict[tuple[str, str], list[Module]] = defaultdict(list)
    for module in modules:
        if not module.path.endswith("__init__.py"):
            named[module.room, module.name.rpartition(".")[2]].append(module)
    for (room, name), twins in named.items():
        if len(twins) > 1 and room != name:
            listed = ", ".join(short(twin.name) for twin in twins)
            yield Offence("twin_modules", listed, f"{twins[0].path}:1: modules of one room share a name: {listed}")


def twin_classes(modules: list[Module]) -> Iterator[Offence]:
    holders: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in classes(module):
            holders[node.name].append(f"{module.path}:{node.lineno}")
    for name, places in holders.items():
        if len(places) > 1:
            yield Offence(
                "twin_classes", name, f"{places[0]}: class {name} is defined again in {', '.join(places[1:])}"
            )


def classes(module: Module) -> list[ast.ClassDef]:
    return [node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)]


def public_names(module: Module) -> set[str]:
    """The top-level names without an underscore that a module defines. A tuple of constants counts as its first."""
    found: set[str] = set()
    for node in module.tree.body:
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                found.add(name)
            case ast.Assign([ast.Name(name) | ast.Tuple([ast.Name(name), *_]), *_]) | ast.AnnAssign(ast.Name(name)):
                found.add(name)
            case _:
                pass
    return {name for name in found if not name.startswith("_")}


def docstring_problem(module: Module) -> str:
    """Why the docstring does not name the one idea of its module. Empty: it does, or a short module has none."""
    docstring = ast.get_docstring(module.tree)
    if docstring is None:
        return "has no docstring" if module.lines >= SMALL_MODULE_LINES.start else ""
    sentence = docstring.split("\n\n")[0].replace("\n", " ").split(". ")[0]
    return 'the first sentence of the docstring names two ideas ("and")' if " and " in sentence else ""


def corridors(modules: list[Module]) -> str:
    """How easily a stranger finds a thing by its name."""
    graph = needs(modules)
    importers = Counter(other for module in modules for other in graph[module.name])
    real = [module for module in modules if module.lines >= SMALL_MODULE_LINES.start and "." in module.name]
    small = sum(module.lines in SMALL_MODULE_LINES and importers[module.name] <= 1 for module in real)
    named = Counter(node.name for one in modules for node in classes(one))
    lines = sum(module.lines for module in modules)
    late = sum(one.is_late for module in modules for one in module.imports)
    count = Counter(one.check for one in offences(modules))
    rows = [
        ("files", f"{len(modules)}"),
        ("lines", f"{lines}"),
        ("median lines of a file", f"{statistics.median([module.lines for module in real] or [0]):.0f}"),
        ("modules under 100 lines with one importer", f"{percent(small, len(real))} %"),
        ("modules named by a gerund", f"{percent(count['gerunds'], len(real))} %"),
        ("classes that share their name", f"{percent(sum(n for n in named.values() if n > 1), named.total())} %"),
        ("imports inside functions, per 1,000 lines", f"{1000 * late / max(lines, 1):.1f}"),
        ("groups of modules that need each other", f"{count['cycles']}"),
        ("modules of one room that share a name", f"{count['twin_modules']}"),
        ("imports of faces past the library", f"{count['past_the_library']}"),
        (f"files above {MAX_FILE_LINES} lines", f"{count['long_files']}"),
        (f"modules of more than {MAX_PUBLIC_NAMES} public names", f"{count['crowded']}"),
        ("modules whose docstring does not name one idea", f"{count['docstrings']}"),
    ]
    return "\n".join(f"{name:<46}{value:>6}" for name, value in rows)


def percent(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.0f}"


def show(modules: list[Module], order: list[str]) -> None:
    """The rooms there are, the highest level first, with their number of modules; then the corridor table."""
    present = [module.room for module in modules]
    for level, rooms in reversed(list(enumerate(order))):
        if here := [f"{room} {present.count(room)}" for room in rooms.split() if room in present]:
            print(f"{level:>3}  {' · '.join(here)}")
    print(corridors(modules))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only the faults; exit 1 if there is one")
    check: bool = parser.parse_args().check
    root = Path(__file__).resolve().parent.parent
    order: list[str] = tomllib.loads((root / "pyproject.toml").read_text())["tool"][PACKAGE]["house"]["order"]
    exceptions = tomllib.loads((root / "scripts" / "house.toml").read_text())
    if not check:
        show(read(root)[0], order)
    found = faults(root, order, exceptions=exceptions)
    print("\n".join(found), end="\n" if found else "")
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
