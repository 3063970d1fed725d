"""Renames what tables list, over src, tests, bench, scripts and docs.

    python scripts/rename.py TABLE…            rename, and say what could not be
    python scripts/rename.py --check TABLE…    only say what could not be renamed

A row of a table is `kind<TAB>module<TAB>old<TAB>new`. The kinds:
class, function, constant: names of a module. They are followed through imports, `__all__`, scopes, quoted annotations
    and `monkeypatch.setattr`.
member: `Class.member`, a method or a field. It is renamed in its class.
local: parameters, variables and private attributes, in all modules of a package.
Where members and parameters are used, pyright says: it runs until it misses no more. Places that it cannot see (texts
of documents, names in strings) are renamed only where they are spelled in full or in backticks.
"""

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "handrail"
SOURCES = ("src", "tests", "bench", "scripts")
NAMED = {"class", "function", "constant"}
KINDS = {*NAMED, "member", "local"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
GENERIC = {"dict", "frozenset", "list", "set", "tuple", "type"}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Row(NamedTuple):
    kind: str
    module: str
    old: str
    new: str


class Edit(NamedTuple):
    line: int  # from 1
    column: int  # in bytes, from 0
    old: str
    new: str


class Origin(NamedTuple):
    """Where a bound name comes from: a name of a module, a whole module (name ""), or neither (module "")."""

    module: str
    name: str


@dataclass
class Scope:
    node: ast.AST
    parent: "Scope | None"
    bound: dict[str, set[Origin]] = field(default_factory=lambda: defaultdict(set))
    outer: set[str] = field(default_factory=set[str])  # by global or nonlocal

    def find(self, name: str) -> "Scope | None":
        """The scope that binds a name used here."""
        scope: Scope | None = self
        while scope is not None:
            seen = scope is self or not isinstance(scope.node, ast.ClassDef)
            if seen and name in scope.bound and name not in scope.outer:
                return scope
            scope = scope.parent
        return None


@dataclass
class File:
    path: Path
    module: str
    lines: list[bytes]
    tree: ast.Module
    scopes: dict[ast.AST, Scope] = field(default_factory=dict[ast.AST, Scope])
    quoted: set[int] = field(default_factory=set[int])  # ids of the constants that are annotations


OTHER = Origin("", "")


def read_table(path: Path) -> Iterator[Row]:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != len(Row._fields) or cells[0] not in KINDS:
            sys.exit(
                f"{path}:{number}: not a row of {', '.join(Row._fields)}, with a kind of {', '.join(sorted(KINDS))}"
            )
        row = Row(*cells)
        yield row


def python_files() -> Iterator[Path]:
    for folder in SOURCES:
        yield from sorted((ROOT / folder).rglob("*.py"))


def read_file(path: Path) -> File:
    inside = path.relative_to(ROOT)
    parts = inside.with_suffix("").parts
    module = ".".join(parts[1:] if parts[0] == "src" else parts).removesuffix(".__init__")
    text = path.read_bytes()
    found = File(path, module, text.splitlines(keepends=True), ast.parse(text))
    bind_scope(found, found.tree, None)
    return found


def bind_scope(file: File, node: ast.AST, parent: Scope | None) -> None:
    """Makes the scope of a module, class, function or comprehension, and those inside it."""
    scope = file.scopes[node] = Scope(node, parent)
    if isinstance(node, FUNCTIONS):
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        for argument in every:
            if argument is not None:
                scope.bound[argument.arg].add(OTHER)
    for child in body_of(node):
        bind_below(file, child, scope)


def body_of(node: ast.AST) -> list[ast.AST]:
    """What is evaluated inside the scope that a node makes."""
    if isinstance(node, ast.Lambda):
        return [node.body]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
        return list(node.body)
    return list(ast.iter_child_nodes(node))


def head_of(node: ast.AST) -> list[ast.AST]:
    """What is evaluated outside the scope that a node makes: decorators, defaults, annotations, bases."""
    inner = set(map(id, body_of(node)))
    return [child for child in ast.iter_child_nodes(node) if id(child) not in inner]


def bind_below(file: File, node: ast.AST, scope: Scope) -> None:
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        scope.outer.update(node.names)
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        owner = scope
        while isinstance(owner.node, COMPREHENSIONS) and owner.parent and is_walrus(owner.node, node):
            owner = owner.parent
        owner.bound[node.id].add(defined_here(file, owner, node.id))
    for name, origin in bindings(file, node, scope):
        scope.bound[name].add(origin)
    if isinstance(node, (*FUNCTIONS, ast.ClassDef, *COMPREHENSIONS)):
        for child in head_of(node):
            bind_below(file, child, scope)
        bind_scope(file, node, scope)
    else:
        for child in ast.iter_child_nodes(node):
            bind_below(file, child, scope)


def bindings(file: File, node: ast.AST, scope: Scope) -> list[tuple[str, Origin]]:
    """The names that a node binds otherwise than by assignment."""
    match node:
        case ast.Import(names):
            firsts = [(alias, alias.name.partition(".")[0]) for alias in names]
            return [(one.asname or first, Origin(one.name if one.asname else first, "")) for one, first in firsts]
        case ast.ImportFrom(module, names, level):
            start = absolute(file, module or "", level)
            return [(alias.asname or alias.name, Origin(start, alias.name)) for alias in names]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [(name, OTHER)]
        case ast.MatchMapping(rest=str(name)):
            return [(name, OTHER)]
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            return [(name, defined_here(file, scope, name))]
        case _:
            return []


def is_walrus(comprehension: ast.AST, name: ast.Name) -> bool:
    return any(isinstance(one, ast.NamedExpr) and one.target is name for one in ast.walk(comprehension))


def defined_here(file: File, scope: Scope, name: str) -> Origin:
    return Origin(file.module, name) if isinstance(scope.node, ast.Module) else OTHER


def absolute(file: File, module: str, level: int) -> str:
    if not level:
        return module
    package = file.module.split(".")
    above = package[: len(package) - level + (file.path.name == "__init__.py")]
    return ".".join([*above, *([module] if module else [])])


class Renamer:
    """Finds the edits of names of modules."""

    def __init__(self, rows: list[Row], files: list[File]) -> None:
        self.rows = {(row.module, row.old): row.new for row in rows if row.kind in NAMED}
        self.files = files
        self.modules = {file.module: file for file in files}
        self.edits: dict[Path, set[Edit]] = defaultdict(set)
        self.problems: list[str] = []
        known = {(file.module, name) for file in files for name in file.scopes[file.tree].bound}
        self.problems += [f"{module}.{old} is not there" for module, old in self.rows if (module, old) not in known]

    def new_name(self, module: str, name: str, depth: int = 0) -> str | None:
        """What a name of a module will be called; through modules that import it under its own name too."""
        if (module, name) in self.rows:
            return self.rows[module, name]
        file = self.modules.get(module)
        if file is None or depth > 8:
            return None
        for origin in file.scopes[file.tree].bound.get(name, ()):
            if origin.name == name and origin.module != module:
                return self.new_name(origin.module, name, depth + 1)
        return None

    def run(self) -> None:
        for file in self.files:
            self._visit(file, file.tree, file.scopes[file.tree])

    def _visit(self, file: File, node: ast.AST, scope: Scope) -> None:
        self._edit_node(file, node, scope)
        if node is not scope.node and node in file.scopes:
            inner = file.scopes[node]
            for child in head_of(node):
                self._visit(file, child, scope)
            for child in body_of(node):
                self._visit(file, child, inner)
        else:
            for child in ast.iter_child_nodes(node):
                self._visit(file, child, scope)

    def _edit_node(self, file: File, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.stmt():
                self._edit_statement(file, node, scope)
            case ast.Name(name):
                self._rename_use(file, node, scope, name)
            case ast.Attribute(value, attr):
                module = self._module_of(file, value, scope)
                if module and (new := self.new_name(module, attr)):
                    line, column = end_of(node)
                    self._edit(file, line, column - len(attr.encode()), attr, new)
            case ast.Call(_, [first, ast.Constant(str(name)) as constant, *_]):
                self._edit_string(file, constant, self._module_of(file, first, scope), name)
            case ast.Constant(str(text)) if "\n" not in text and re.fullmatch(r"[\w.\[\], |\"']{,200}", text):
                self._edit_quoted(file, node, text, scope)
            case _:
                pass

    def _edit_statement(self, file: File, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.ImportFrom():
                self._edit_import(file, node, scope)
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                new = self.new_name(file.module, name) if isinstance(scope.node, ast.Module) else None
                if new:
                    self._edit_after(file, node, rb"(?:async\s+def|def|class)\s+", name, new)
                    self._check_free(file, node, scope, scope, name, new)
            case ast.Global(names):
                for name in names:
                    if new := self.new_name(file.module, name):
                        self._edit_after(file, node, rb"global\s+(?:\w+,\s*)*?", name, new)
            case ast.Assign([ast.Name("__all__")], ast.List(items) | ast.Tuple(items)):
                for item in items:
                    if isinstance(item, ast.Constant) and isinstance(item.value, str):
                        self._edit_string(file, item, file.module, item.value)
            case _:
                pass

    def _edit_string(self, file: File, node: ast.Constant, module: str | None, name: str) -> None:
        if module and (new := self.new_name(module, name)):
            self._edit_after(file, node, rb"[\"']", name, new)

    def _edit_import(self, file: File, node: ast.ImportFrom, scope: Scope) -> None:
        start = absolute(file, node.module or "", node.level)
        for alias in node.names:
            if new := self.new_name(start, alias.name):
                self._edit(file, alias.lineno, alias.col_offset, alias.name, new)
                if alias.asname is None:
                    self._check_free(file, node, scope, scope, alias.name, new)

    def _rename_use(
        self, file: File, node: ast.Name, scope: Scope, name: str, at: tuple[int, int] | None = None
    ) -> None:
        owner = scope.find(name)
        if owner is None:
            return
        origins = owner.bound[name]
        news = {self.new_name(one.module, one.name) if one.name == name else None for one in origins}
        if news == {None}:
            return
        [new, *rest] = news
        if rest or new is None:
            self.problems.append(f"{file.path.relative_to(ROOT)}:{node.lineno}: {name} is bound in more than one way")
            return
        line, column = at or (node.lineno, node.col_offset)
        self._edit(file, line, column, name, new)
        self._check_free(file, node, scope, owner, name, new)

    def _check_free(self, file: File, node: ast.AST, scope: Scope, owner: Scope, old: str, new: str) -> None:
        """Says so where the new name means something else in the place where it is used."""
        there = scope.find(new)
        if there is None:
            return
        line = getattr(node, "lineno", 0)
        where = f"{file.path.relative_to(ROOT)}:{line}"
        inner = scope
        while inner is not None and inner is not owner:
            if inner is there:
                self.problems.append(f"{where}: {old} → {new}, but {new} is bound in the function")
                return
            inner = inner.parent
        if there is owner:
            renamed = all(self.new_name(one.module, one.name) not in {None, new} for one in there.bound[new])
            same = all(self.new_name(one.module, one.name) == new for one in there.bound[new])
            if not renamed and not same:
                self.problems.append(f"{where}: {old} → {new}, but {new} is there already")

    def _module_of(self, file: File, node: ast.expr, scope: Scope) -> str | None:
        """The module that an expression is, as far as one can see."""
        match node:
            case ast.Name(name):
                owner = scope.find(name)
                for origin in owner.bound[name] if owner else ():
                    full = f"{origin.module}.{origin.name}" if origin.name else origin.module
                    if full in self.modules:
                        return full
                    if owner is not None and (made := self._imported_by_call(owner, name)):
                        return made
                return None
            case ast.Attribute(value, attr):
                start = self._module_of(file, value, scope)
                return full if start and (full := f"{start}.{attr}") in self.modules else None
            case ast.Call(
                ast.Name("import_module") | ast.Attribute(attr="import_module"), [ast.Constant(str(name)), *_]
            ):
                return name
            case _:
                return None

    def _imported_by_call(self, owner: Scope, name: str) -> str | None:
        for node in ast.walk(owner.node):
            match node:
                case ast.Assign(
                    [ast.Name(one)],
                    ast.Call(
                        ast.Name("import_module") | ast.Attribute(attr="import_module"), [ast.Constant(str(module)), *_]
                    ),
                ) if one == name:
                    return module
                case _:
                    pass
        return None

    def _edit_quoted(self, file: File, node: ast.Constant, text: str, scope: Scope) -> None:
        """Full names, and names in annotations that are quoted."""
        line = file.lines[node.lineno - 1]
        for match in re.finditer(rf"\b{PACKAGE}(?:\.\w+)+", text):
            module, _, name = match[0].rpartition(".")
            if new := self.new_name(module, name):
                start = line.find(match[0].encode(), node.col_offset)
                if start >= 0:
                    self._edit(file, node.lineno, start + len(module) + 1, name, new)
        if not self._is_annotation(file, node):
            return
        for match in re.finditer(r"(?<![\w.])[A-Za-z_]\w*", text):
            column = line.find(text.encode(), node.col_offset)
            if column >= 0:
                fake = ast.Name(match[0], ast.Load(), lineno=node.lineno, col_offset=column + match.start())
                self._rename_use(file, fake, scope, match[0])

    def _is_annotation(self, file: File, node: ast.Constant) -> bool:
        if not file.quoted:
            file.quoted = {0, *map(id, quoted_annotations(file.tree))}
        return id(node) in file.quoted

    def _edit_after(self, file: File, node: ast.stmt | ast.expr, before: bytes, name: str, new: str) -> None:
        line, column = node.lineno, node.col_offset
        found = re.compile(before + rb"(" + name.encode() + rb")\b").search(file.lines[line - 1], column)
        if found is None:
            self.problems.append(f"{file.path.relative_to(ROOT)}:{line}: {name} is not found in the text")
            return
        self._edit(file, line, found.start(1), name, new)

    def _edit(self, file: File, line: int, column: int, old: str, new: str) -> None:
        self.edits[file.path].add(Edit(line, column, old, new))


def end_of(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def quoted_annotations(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        inside: list[ast.expr | None] = []
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                inside = [node.returns]
            case ast.arg() | ast.AnnAssign():
                inside = [node.annotation]
            case ast.Subscript(ast.Name(name) | ast.Attribute(attr=name)) if name in GENERIC or name[0].isupper():
                inside = [node.slice]
            case ast.Call(ast.Name("cast" | "TypeVar" | "NewType"), arguments, keywords):
                inside = [*arguments[:1], *(one.value for one in keywords)]
            case ast.ClassDef():
                inside = list(node.bases)
            case _:
                pass
        for one in inside:
            for found in ast.walk(one) if one is not None else ():
                if isinstance(found, ast.Constant) and isinstance(found.value, str):
                    yield found


def write(edits: dict[Path, set[Edit]]) -> int:
    for path, some in edits.items():
        lines = path.read_bytes().splitlines(keepends=True)
        for line, column, old, new in sorted(some, reverse=True):
            text = lines[line - 1]
            there = text[column : column + len(old.encode())]
            if there != old.encode():
                sys.exit(f"{path}:{line}:{column}: {there!r} is not {old}")
            lines[line - 1] = text[:column] + new.encode() + text[column + len(old.encode()) :]
        path.write_bytes(b"".join(lines))
    return sum(map(len, edits.values()))


# Locals: the variables of functions; the names of arguments in calls follow by what pyright says.


def rename_locals(rows: list[Row], files: list[File]) -> list[str]:
    """Renames them; what could not be, because the new name is used in the same function."""
    edits: dict[Path, set[Edit]] = defaultdict(set)
    problems: list[str] = []
    for row in rows:
        for file in files if row.kind == "local" else ():
            if not f"{file.module}.".startswith(f"{row.module}."):
                continue
            for scope in file.scopes.values():
                if isinstance(scope.node, FUNCTIONS) and OTHER in scope.bound.get(row.old, ()):
                    if any(new_word(one) == row.new for one in ast.walk(scope.node)):
                        problems.append(f"{file.path.relative_to(ROOT)}:{scope.node.lineno}: {row.new} is in use")
                    else:
                        edits[file.path].update(local_edits(file, scope, row))
            edits[file.path].update(
                Edit(line, column - len(row.old), row.old, row.new)
                for node in ast.walk(file.tree)
                if isinstance(node, ast.Attribute) and node.attr == f"_{row.old}" and isinstance(node.value, ast.Name)
                for line, column in (end_of(node),)
            )
    print(f"{write(edits)} places of locals renamed")
    follow({}, {row.old: {row.new} for row in rows if row.kind == "local"})
    return problems


def new_word(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else None


def local_edits(file: File, owner: Scope, row: Row) -> Iterator[Edit]:
    """Where the function of a scope binds and uses one of its variables."""
    left = [(child, owner) for child in body_of(owner.node)]
    yield from (
        Edit(one.lineno, one.col_offset, row.old, row.new)
        for head in head_of(owner.node)
        if isinstance(head, ast.arguments)
        for one in ast.iter_child_nodes(head)
        if isinstance(one, ast.arg) and one.arg == row.old
    )
    while left:
        node, scope = left.pop()
        if isinstance(node, ast.Name) and node.id == row.old and scope.find(row.old) is owner:
            yield Edit(node.lineno, node.col_offset, row.old, row.new)
        if node in file.scopes:
            left += [(child, scope) for child in head_of(node)]
            left += [(child, file.scopes[node]) for child in body_of(node)]
        else:
            left += [(child, scope) for child in ast.iter_child_nodes(node)]


# Members: their definitions first, then what pyright says about the rest.

_ACCESS = re.compile(r'Cannot (?:access|assign to) attribute "(\w+)" for class "(?:type\[)?(\w+)')
_PARAMETER = re.compile(r'No parameter named "(\w+)"')


def rename_members(rows: list[Row]) -> list[str]:
    """Renames members at their definitions and wherever pyright misses the old name; the rows that name no member."""
    classes = {(row.module, row.old): row.new for row in rows if row.kind == "class"}
    members: dict[tuple[str, str, str], str] = {}
    for row in rows:
        if row.kind == "member":
            owner, _, member = row.old.partition(".")
            members[row.module, classes.get((row.module, owner), owner), member] = row.new
    if not members:
        return []
    edits: dict[Path, set[Edit]] = defaultdict(set)
    problems: list[str] = []
    for (module, owner, member), new in members.items():
        path = ROOT / "src" / (module.replace(".", "/") + ".py")
        if not path.exists():
            path = path.with_suffix("") / "__init__.py"
        found = list(definitions(path, owner, member))
        if not found:
            problems.append(f"{module}.{owner}.{member} is not there")
        edits[path].update(Edit(line, column, member, new) for line, column in found)
    write(edits)
    renamed: dict[str, set[str]] = defaultdict(set)
    for (_, _, member), new in members.items():
        renamed[member].add(new)
    by_owner = {(owner, member): new for (_, owner, member), new in members.items()}
    follow(by_owner, renamed)
    return problems


def follow(by_owner: dict[tuple[str, str], str], renamed: dict[str, set[str]]) -> None:
    """Renames what pyright misses, until it misses no more."""
    while count := write(uses(by_owner, renamed)):
        print(f"{count} places renamed where they are used")


def definitions(path: Path, owner: str, member: str) -> Iterator[tuple[int, int]]:
    """Where a class defines a member: its body, assignments to self, and uses through self."""
    lines = path.read_bytes().splitlines()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if not (isinstance(node, ast.ClassDef) and node.name == owner):
            continue
        for one in node.body:
            match one:
                case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) if name == member:
                    found = re.compile(rb"def\s+(" + member.encode() + rb")\b").search(lines[one.lineno - 1])
                    assert found is not None
                    yield one.lineno, found.start(1)
                case ast.AnnAssign(ast.Name(name) as target) | ast.Assign([ast.Name(name) as target]) if name == member:
                    yield target.lineno, target.col_offset
                case _:
                    pass
        for one in ast.walk(node):
            match one:
                case ast.Attribute(ast.Name("self" | "cls"), name) if name == member:
                    line, column = end_of(one)
                    yield line, column - len(member)
                case _:
                    pass


def uses(by_owner: dict[tuple[str, str], str], renamed: dict[str, set[str]]) -> dict[Path, set[Edit]]:
    """One run of pyright: the places where an old member is missed."""
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    edits: dict[Path, set[Edit]] = defaultdict(set)
    for fault in json.loads(done.stdout)["generalDiagnostics"]:
        path, start = Path(str(fault["file"])), fault["range"]["start"]
        text = path.read_bytes().splitlines()[int(start["line"])].decode()
        column = len(text[: start["character"]].encode())
        for match in _ACCESS.finditer(fault["message"]):
            if (match[2], match[1]) in by_owner:
                new = by_owner[match[2], match[1]]
            elif len(found := renamed.get(match[1], ())) == 1:
                [new] = found
            else:
                continue
            edits[path].add(Edit(start["line"] + 1, column, match[1], new))
        for match in _PARAMETER.finditer(fault["message"]):
            if len(found := renamed.get(match[1], ())) == 1:
                [new] = found
                edits[path].add(Edit(start["line"] + 1, column, match[1], new))
    return edits


def rename_in_documents(rows: list[Row], files: list[File]) -> None:
    """Names of classes in backticks, where only one class had that name, and full names."""
    holders: dict[str, int] = defaultdict(int)
    for file in files:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.ClassDef) and file.module.startswith(PACKAGE):
                holders[node.name] += 1
    classes = {row.old: row.new for row in rows if row.kind == "class" and holders[row.old] == 1}
    full = {f"{row.module}.{row.old}": f"{row.module}.{row.new}" for row in rows if row.kind in NAMED}
    spans = re.compile(r"`[^`\n]+`")
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *python_files()]:
        text = path.read_text()

        def swap(match: re.Match[str]) -> str:
            return re.sub(r"(?<![\w.-])[A-Z]\w+\b", lambda word: classes.get(word[0], word[0]), match[0])

        new = spans.sub(swap, text)
        new = re.sub(rf"\b{PACKAGE}(?:\.\w+)+", lambda word: full.get(word[0], word[0]), new)
        if new != text:
            path.write_text(new)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="only say what could not be renamed")
    options = parser.parse_args()
    if missing := [str(table) for table in options.tables if not table.is_file()]:
        sys.exit(f"there is no table {', '.join(missing)}")
    rows = [row for table in options.tables for row in read_table(table)]
    files = [read_file(path) for path in python_files()]
    renamer = Renamer(rows, files)
    renamer.run()
    print("\n".join(renamer.problems), end="\n" if renamer.problems else "")
    if options.check or renamer.problems:
        return 1 if renamer.problems else 0
    print(f"{write(renamer.edits)} places of names renamed")
    rename_in_documents(rows, files)
    problems = rename_members(rows)
    if any(row.kind == "local" for row in rows):
        problems += rename_locals(rows, [read_file(path) for path in python_files()])
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
