"""Merges modules by a table, and follows the move in src, tests, bench, scripts and documents.

    python scripts/merge.py TABLE            merge
    python scripts/merge.py --check TABLE    only say what stands in the way: equal names, import cycles

A row of a table is `target | docstring | source source …`, modules as seen from the package. The sources are joined in
the order of their imports. Their docstrings become comments that begin with `# §`, to be rewritten by hand. Equal
definitions are joined. Names that differ in meaning are renamed first, with scripts/rename.py. Run ruff afterwards.
"""

import argparse
import ast
import re
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
PACKAGE = "handrail"
CODE = ("src", "tests", "bench", "scripts")
MOVED = "\x01"  # marks a module name that is final, so that no later substitution changes it again
DOTTED = re.compile(rf"(?<!{MOVED})\b{PACKAGE}((?:\.[a-z_0-9]+)+)")
FILE = re.compile(rf"((?:src/)?{PACKAGE}/)?((?:[a-z_0-9]+/)+[a-z_0-9]+)\.py\b")
Edit = tuple[int, int, int, int, str]


@dataclass
class Target:
    module: str
    docstring: str
    sources: list[str]


@dataclass
class Source:
    module: str
    text: str
    tree: ast.Module
    twins: set[str] = field(default_factory=set[str])
    """Definitions that an earlier source of the same target has too."""


class Table:
    def __init__(self, path: Path) -> None:
        rows = [line.split("|") for line in path.read_text().splitlines() if line.strip() and line[0] != "#"]
        self.targets = [
            Target(f"{PACKAGE}.{target.strip()}", doc.strip(), [f"{PACKAGE}.{name}" for name in names.split()])
            for target, doc, names in rows
        ]
        self.home = {source: target.module for target in self.targets for source in target.sources}
        twice = [name for name, count in Counter(s for t in self.targets for s in t.sources).items() if count > 1]
        missing = [name for name in self.home if not module_path(name).exists()]
        if twice or missing:
            sys.exit(f"in two targets: {twice}; missing: {missing}")
        self.moved = {source: target for source, target in self.home.items() if source != target}
        self.sources = {name: read_source(name) for name in self.home}


def module_path(module: str) -> Path:
    path = SRC.joinpath(*module.split("."))
    file = path.with_suffix(".py")
    return file if file.exists() or not path.is_dir() else path / "__init__.py"


def module_name(path: Path) -> str:
    if not path.is_relative_to(SRC):
        return ""
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


def read_source(module: str) -> Source:
    text = module_path(module).read_text()
    return Source(module, text, ast.parse(text))


def definitions(tree: ast.Module) -> dict[str, ast.stmt]:
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found[node.name] = node
            case ast.Assign():
                names = [part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)]
                found.update(dict.fromkeys(names, node))
            case ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = node
            case _:
                pass
    return found


def is_type_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING") and not node.orelse


def find_obstacles(table: Table) -> Iterator[str]:
    """What keeps sources from being joined. Marks equal definitions as twins on the way."""
    for target in table.targets:
        owners: dict[str, str] = {}
        for name in target.sources:
            for defined, node in definitions(table.sources[name].tree).items():
                owner = owners.setdefault(defined, name)
                if owner == name:
                    continue
                if ast.dump(definitions(table.sources[owner].tree)[defined]) == ast.dump(node):
                    table.sources[name].twins.add(defined)
                else:
                    yield f"{name} and {owner} define {defined}"
        for name in target.sources:
            yield from _import_obstacles(table, target.module, name, owners)


def _import_obstacles(table: Table, target: str, name: str, owners: dict[str, str]) -> Iterator[str]:
    for node in ast.walk(table.sources[name].tree):
        for alias in node.names if isinstance(node, ast.ImportFrom) else []:
            assert isinstance(node, ast.ImportFrom)
            inside = table.home.get(node.module or "") == target
            bound = alias.asname or alias.name
            if not inside and owners.get(bound, name) != name:
                yield f"{name} imports {bound} from {node.module}, and {owners[bound]} defines it"
            if inside and alias.asname:
                yield f"{name} imports {alias.name} as {alias.asname} from {node.module}, which is joined with it"
            if table.home.get(f"{node.module}.{alias.name}") == target:
                yield f"{name} imports the module {node.module}.{alias.name}, which is joined with it"


def find_cycles(table: Table) -> Iterator[str]:
    """Groups of modules that would need each other when they are loaded."""
    graph: dict[str, set[str]] = defaultdict(set)
    for path in SRC.rglob("*.py"):
        module = module_name(path)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    needed = full if module_path(full).exists() else node.module or ""
                    graph[table.home.get(module, module)].add(table.home.get(needed, needed))
    reached = {module: _reachable(graph, module) for module in list(graph)}
    seen: set[str] = set()
    for module in sorted(reached):
        group = {other for other in reached[module] if module in reached.get(other, ())}
        if len(group) > 1 and module not in seen:
            seen |= group
            yield f"import cycle: {', '.join(sorted(group))}"


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    left = [start]
    while left:
        module = left.pop()
        for needed in graph.get(module, set()) - {module} - found:
            found.add(needed)
            left.append(needed)
    return found


def apply_edits(text: str, edits: list[Edit]) -> str:
    lines = text.encode().splitlines(keepends=True)
    for first, start, last, end, new in sorted(edits, reverse=True):
        lines[first - 1 : last] = [lines[first - 1][:start] + new.encode() + lines[last - 1][end:]]
    return b"".join(lines).decode()


def place(node: ast.stmt | ast.expr) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for _, value in ast.iter_fields(node):
        items = cast("list[object]", value) if isinstance(value, list) else []
        if statements := [item for item in items if isinstance(item, ast.stmt)]:
            yield statements


class Importer:
    """One Python file whose imports follow the move."""

    def __init__(self, table: Table, path: Path, text: str) -> None:
        self._table, self._text, self._tree = table, text, ast.parse(text)
        own = module_name(path)
        self._joined = own in table.home
        self._target = table.home.get(own, own)
        self._edits: list[Edit] = []
        self._renamed: dict[str, str] = {}

    def rewrite(self) -> str:
        for block in (block for node in ast.walk(self._tree) for block in blocks(node)):
            for node in block:
                if isinstance(node, ast.ImportFrom):
                    self._follow(node, block)
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Name) and node.id in self._renamed:
                self._edits.append((*place(node), self._renamed[node.id]))
        return apply_edits(self._text, self._edits)

    def _follow(self, node: ast.ImportFrom, block: list[ast.stmt]) -> None:
        module = node.module or ""
        new = self._table.home.get(module)
        if new is not None and new == self._target and self._joined:
            self._drop(node, block)
        elif new is not None and new != module:
            start = node.col_offset + len("from ")
            self._edits.append((node.lineno, start, node.lineno, start + len(module), MOVED + new))
        elif any(f"{module}.{alias.name}" in self._table.moved for alias in node.names):
            self._edits.append((*place(node), self._module_imports(node)))

    def _drop(self, node: ast.ImportFrom, block: list[ast.stmt]) -> None:
        """The names are of this module now. A block that would be empty gets `pass`."""
        first, start, last, end = place(node)
        line = self._text.encode().splitlines()[last - 1]
        if line[end:].strip().startswith(b"#"):
            end = len(line)
        gone = all(isinstance(other, ast.ImportFrom) and self._is_local(other.module) for other in block)
        self._edits.append((first, start, last, end, "pass" if gone and node is block[0] else ""))

    def _is_local(self, module: str | None) -> bool:
        return self._table.home.get(module or "") == self._target

    def _module_imports(self, node: ast.ImportFrom) -> str:
        packages: dict[str, list[str]] = defaultdict(list)
        for alias in node.names:
            package, _, name = self._table.moved.get(
                f"{node.module}.{alias.name}", f"{node.module}.{alias.name}"
            ).rpartition(".")
            if alias.asname is None and name != alias.name:
                self._renamed[alias.name] = name
            suffix = f" as {alias.asname}" if alias.asname not in {None, name} else ""
            packages[package].append(name + suffix)
        lines = [
            f"from {MOVED}{package} import {', '.join(dict.fromkeys(names))}" for package, names in packages.items()
        ]
        return ("\n" + " " * node.col_offset).join(lines)


def follow_texts(table: Table) -> dict[Path, str]:
    """All files that change, with their new text."""
    changed: dict[Path, str] = {}
    documents = [*ROOT.glob("*.md"), ROOT / "pyproject.toml"]
    files = [path for folder in (*CODE, "docs") for path in (ROOT / folder).rglob("*") if path.is_file()]
    for path in (*files, *documents):
        if "__pycache__" in path.parts or path.suffix in {".pyc", ".tsv", ".table"} or path == Path(__file__):
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        new = Importer(table, path, text).rewrite() if path.suffix == ".py" else text
        new = DOTTED.sub(lambda match: _follow_dotted(table, match[0]), new)
        if "golden" not in path.parts:
            new = FILE.sub(lambda match: _follow_path(table, match), new)
        if (new := new.replace(MOVED, "")) != text:
            changed[path] = new
    return changed


def _follow_dotted(table: Table, name: str) -> str:
    parts = name.split(".")
    for length in range(len(parts), 1, -1):
        if (new := table.moved.get(".".join(parts[:length]))) is not None:
            return ".".join([new, *parts[length:]])
    return name


def _follow_path(table: Table, match: re.Match[str]) -> str:
    new = table.moved.get(f"{PACKAGE}.{match[2].replace('/', '.')}")
    return match[0] if new is None else f"{match[1] or ''}{new.removeprefix(f'{PACKAGE}.').replace('.', '/')}.py"


def join_sources(table: Table, target: Target, texts: dict[str, str]) -> str:
    imports: list[str] = []
    checking: list[str] = []
    bodies: list[str] = []
    docstring = target.docstring
    for name in order_sources(table, target):
        lines, tree = texts[name].splitlines(), ast.parse(texts[name])
        dropped: set[int] = set()
        defined = definitions(tree)
        for twin in table.sources[name].twins:
            node = defined[twin]
            dropped.update(range(_first_line(node) - 1, node.end_lineno or 0))
        own = ast.get_docstring(tree)
        for number, node in enumerate(tree.body):
            span = range(node.lineno - 1, node.end_lineno or 0)
            if number == 0 and own is not None:
                dropped.update(span)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                imports += lines[span.start : span.stop]
                dropped.update(span)
            elif isinstance(node, ast.If) and is_type_import(node):
                checking += lines[node.body[0].lineno - 1 : span.stop]
                dropped.update(span)
        body = "\n".join(line for number, line in enumerate(lines) if number not in dropped).strip("\n")
        bodies.append(_heading(name, own, alone=len(target.sources) == 1) + body)
        docstring = docstring or own or ""
    head = "\n".join([f'"""{docstring}"""', "", *imports, "", *(["if TYPE_CHECKING:", *checking] if checking else [])])
    return head + "\n\n\n" + "\n\n\n".join(bodies) + "\n"


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _heading(name: str, docstring: str | None, *, alone: bool) -> str:
    if alone:
        return ""
    text = f"[{name.removeprefix(f'{PACKAGE}.')}] {docstring or ''}"
    return "".join(f"# § {line}\n" for line in textwrap.wrap(" ".join(text.split()), 112)) + "\n"


def order_sources(table: Table, target: Target) -> list[str]:
    """The sources of a target, each behind those that it imports when it is loaded."""
    ordered: list[str] = []

    def visit(name: str) -> None:
        if name in ordered:
            return
        body = table.sources[name].tree.body
        for other in [node.module for node in body if isinstance(node, ast.ImportFrom)]:
            if other in target.sources and other != name:
                visit(other)
        ordered.append(name)

    for name in target.sources:
        visit(name)
    return ordered


def merge(table: Table) -> None:
    changed = follow_texts(table)
    texts = {name: changed.get(module_path(name), source.text) for name, source in table.sources.items()}
    joined = {target.module: join_sources(table, target, texts) for target in table.targets}
    for path, text in changed.items():
        path.write_text(text)
    folders: set[Path] = set()
    for name in table.moved:
        path = module_path(name)
        path.unlink()
        folders.add(path.parent)
    for module, text in joined.items():
        path = SRC.joinpath(*module.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text)
    for folder in sorted(folders, reverse=True):
        left = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
        if [path.name for path in left] == ["__init__.py"]:
            print(f"an empty package is left: {folder.relative_to(ROOT)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    table = Table(arguments.table)
    obstacles = [*find_obstacles(table), *find_cycles(table)]
    print("\n".join(obstacles))
    if not obstacles and not arguments.check:
        merge(table)
    return bool(obstacles)


if __name__ == "__main__":
    sys.exit(main())
