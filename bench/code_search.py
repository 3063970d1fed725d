"""codebase_search: how fast it is, and how often it finds the function of a docstring.

The files are the installed packages. A question is the first paragraph of a docstring that no other function has. The
docstring is removed from its file. The same questions go to ripgrep (files with most of the words first) and to BM25
over whole files. They answer with files, so they are compared twice: by the file, and by the function, where a file
stands for its functions, those with the most words of the question first.
"""

import ast
import os
import random
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from bench.measure import Row
from handrail.code.crawler import refresh_index
from handrail.code.ranker import rank_chunks
from handrail.store.code_index import CodeIndex
from handrail.workspace.search.engine import SearchScope
from handrail.workspace.search.ripgrep import find_ripgrep
from handrail.workspace.search.search import choose_engines
from handrail.workspace.workspace import Workspace

FILES = 5_000
QUESTIONS = 600
PER_PACKAGE = 40
INDEX_SECONDS, EDIT_MILLISECONDS, QUERY_MILLISECONDS = 10.0, 50.0, 20.0
GOAL = 1.5
DEPTH = 10
_WORD = re.compile(r"[a-z0-9_]+")
COMMON = "a an and are as at be by for from has if in is it no not of on or that the this to when with"

Place = tuple[str, int, int]
"""A path with the first and the last line."""
Search = Callable[[str], Sequence[Place]]


class Question(NamedTuple):
    """The first paragraph of a docstring, with the place of its function."""

    text: str
    path: str
    line: int
    end_line: int
    package: str
    doc: tuple[int, int]
    """The lines of the docstring."""


class Score(NamedTuple):
    """The mean reciprocal rank within ten answers, and the share of questions that are answered by the first five."""

    mrr: float
    recall: float


def rows() -> Iterator[Row]:
    development = Path(os.environ["HANDRAIL_BENCH_DEVELOPMENT"]).parent.parent
    packages = next(development.glob("lib/python*/site-packages"))
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        yield from measure_speed(packages, Path(folder))
        questions = copy_without_docs(packages, Path(folder, "whole"), QUESTIONS)
        yield from compare(Path(folder, "whole"), Path(folder, "state-whole"), questions)


def measure_speed(packages: Path, folder: Path) -> Iterator[Row]:
    tree = folder / "sample"
    for path in random.Random(5).sample(list_sources(packages), FILES):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(packages / path, tree / path)
    (folder / "state").mkdir()
    with Workspace(str(tree)) as workspace, closing(CodeIndex(str(folder / "state"))) as index:
        refresh = build_refresh(workspace, index)
        start = time.perf_counter()
        refresh()
        yield Row(f"index {FILES:,} files", time.perf_counter() - start, "s", INDEX_SECONDS)
        edits: list[float] = []
        for path in sorted(tree.rglob("*.py"))[:: FILES // 15]:
            path.write_text(path.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
            start = time.perf_counter()
            refresh()
            edits.append(time.perf_counter() - start)
        yield Row("index again after one edit", sorted(edits)[len(edits) // 2] * 1e3, "ms", EDIT_MILLISECONDS)
        times: list[float] = []
        for question in find_questions(packages, list_sources(packages), 100):
            start = time.perf_counter()
            rank_chunks(index, question.text, [b"."], DEPTH)
            times.append(time.perf_counter() - start)
        yield Row("query", sorted(times)[len(times) // 2] * 1e3, "ms", QUERY_MILLISECONDS)


def build_refresh(workspace: Workspace, index: CodeIndex) -> Callable[[], object]:
    root = workspace.main
    scope = SearchScope(root.descriptor, root.descriptor, ".", workspace.kernel)
    engine = choose_engines(workspace, "auto").whole
    return lambda: refresh_index(index, engine, scope, "", 600)


def compare(tree: Path, state: Path, questions: Sequence[Question]) -> Iterator[Row]:
    scores = score_all(tree, state, questions)
    for level in ("function", "file"):
        for name, found in scores.items():
            yield Row(f"{name}: MRR@10 by {level}", found[level].mrr, "")
            yield Row(f"{name}: recall@5 by {level}", found[level].recall, "")
        better = max(scores[name][level].mrr for name in ("ripgrep", "BM25 of files"))
        ours = scores["codebase_search"][level].mrr
        limit = 1 / GOAL if level == "function" else None
        yield Row(f"better baseline / codebase_search by {level}", better / ours, "x", limit)


def score_all(tree: Path, state: Path, questions: Sequence[Question]) -> dict[str, dict[str, Score]]:
    """The scores of the three searches by function and by file, on the same questions."""
    state.mkdir()
    with Workspace(str(tree)) as workspace, closing(CodeIndex(str(state))) as index:
        build_refresh(workspace, index)()
        searches: dict[str, Search] = {
            "codebase_search": lambda text: [
                (one.chunk.path.decode(), one.chunk.line, one.chunk.end_line)
                for one in rank_chunks(index, text, [b"."], 5 * DEPTH)
            ],
            "ripgrep": build_ripgrep_search(tree),
            "BM25 of files": build_file_search(tree),
        }
        return {name: score(tree, search, questions) for name, search in searches.items()}


def score(tree: Path, search: Search, questions: Sequence[Question]) -> dict[str, Score]:
    by_function, by_file = list[int](), list[int]()
    for question in questions:
        found = search(question.text)
        files = list(dict.fromkeys(path for path, _, _ in found))
        by_file.append(files.index(question.path) + 1 if question.path in files else 0)
        is_of_files = bool(found) and not found[0][1]
        places = list(expand(tree, files, question.text)) if is_of_files else found
        hits = (n for n, place in enumerate(places, 1) if is_hit(question, place))
        by_function.append(next(hits, 0))
    return {"function": summarize(by_function), "file": summarize(by_file)}


def is_hit(question: Question, place: Place) -> bool:
    path, line, end_line = place
    return path == question.path and line <= question.end_line and end_line >= question.line


def summarize(ranks: Sequence[int]) -> Score:
    return Score(
        sum(1 / rank for rank in ranks if 0 < rank <= DEPTH) / len(ranks),
        sum(0 < rank <= 5 for rank in ranks) / len(ranks),
    )


def expand(tree: Path, files: Sequence[str], text: str) -> Iterator[Place]:
    """The functions of files, in each file those with the most words of the text first, as many as count."""
    words, count = set(list_words(text)), 0
    for path in files:
        for place, _ in sorted(locate_functions(tree / path), key=lambda one: -len(words & one[1])):
            yield path, *place
            count += 1
            if count >= DEPTH:
                return


@lru_cache(maxsize=4_096)
def locate_functions(path: Path) -> list[tuple[tuple[int, int], frozenset[str]]]:
    """The lines of the functions of a file, from top to bottom, with their words."""
    text = path.read_text(encoding="utf-8")
    lines, functions = text.split("\n"), list_functions(ast.parse(text))
    spans = sorted((function.lineno, function.end_lineno or function.lineno) for function in functions)
    return [(span, frozenset(_WORD.findall("\n".join(lines[span[0] - 1 : span[1]]).lower()))) for span in spans]


# What is compared


def build_ripgrep_search(tree: Path) -> Search:
    program = find_ripgrep((str(tree),))
    if program is None:
        raise AssertionError("there is no rg to compare with")

    def search(text: str) -> Sequence[Place]:
        words = [option for word in list_words(text) for option in ("-e", word)]
        command = [program, "--no-config", "-iwoFNH", *words, "./"]
        lines = subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()
        found = defaultdict[str, Counter[str]](Counter)
        for line in lines:
            path, _, word = line.partition(":")
            found[path.removeprefix("./")][word.lower()] += 1
        best = sorted(found, key=lambda path: (-len(found[path]), -found[path].total(), path))
        return [(path, 0, 0) for path in best[:DEPTH]]

    return search


def build_file_search(tree: Path) -> Search:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE whole USING fts5 (body)")
    paths = list_sources(tree)
    bodies = ((number, (tree / path).read_text(encoding="utf-8")) for number, path in enumerate(paths))
    database.executemany("INSERT INTO whole (rowid, body) VALUES (?, ?)", bodies)

    def search(text: str) -> Sequence[Place]:
        match = " OR ".join(f'"{word}"' for word in list_words(text))
        statement = "SELECT rowid FROM whole WHERE whole MATCH ? ORDER BY rank LIMIT ?"
        numbers: list[tuple[int]] = database.execute(statement, (match, DEPTH)).fetchall()
        return [(paths[number], 0, 0) for (number,) in numbers]

    return search


def list_words(text: str) -> list[str]:
    every = list(dict.fromkeys(_WORD.findall(text.lower())))
    return [word for word in every if word not in COMMON.split() and len(word) > 1] or every


# The questions


def list_sources(packages: Path, only: Sequence[str] = ()) -> list[str]:
    """The Python files that parse, by their paths: of all packages or of some."""
    return sorted(
        path.relative_to(packages).as_posix()
        for folder in (only or ("",))
        for path in (packages / folder).rglob("*.py")
        if not {"node_modules", "dist", "build"} & set(path.parts) and parse(path) is not None
    )


def parse(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):
        return None


def list_functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def find_questions(packages: Path, paths: Sequence[str], count: int, seed: int = 31) -> list[Question]:
    found: list[Question] = []
    seen = Counter[str]()
    for path in paths:
        for function in list_functions(parse(packages / path) or ast.Module([], [])):
            doc, first = ast.get_docstring(function), function.body[0]
            text = " ".join((doc or "").strip().split("\n\n")[0].split())
            seen[text] += 1
            end, doc_end = function.end_lineno or 0, first.end_lineno or 0
            if 6 <= len(text.split()) <= 40 and end - doc_end >= 4:
                package = path.split("/")[0]
                found.append(Question(text, path, function.lineno, end, package, (first.lineno, doc_end)))
    unique = [question for question in found if seen[question.text] == 1]
    random.Random(seed).shuffle(unique)
    per_package, picked = Counter[str](), list[Question]()
    for question in unique:
        per_package[question.package] += 1
        if per_package[question.package] <= PER_PACKAGE and len(picked) < count:
            picked.append(question)
    return picked


def copy_without_docs(
    packages: Path, tree: Path, count: int, only: Sequence[str] = (), seed: int = 31
) -> list[Question]:
    """Copy the packages, all or some, without the docstrings of the questions. The lines keep their numbers."""
    paths = list_sources(packages, only)
    questions = find_questions(packages, paths, count, seed)
    removed = defaultdict[str, list[tuple[int, int]]](list)
    for question in questions:
        removed[question.path].append(question.doc)
    for path in paths:
        lines = (packages / path).read_text(encoding="utf-8").split("\n")
        for start, end in removed[path]:
            indent = lines[start - 1][: len(lines[start - 1]) - len(lines[start - 1].lstrip())]
            lines[start - 1 : end] = [f"{indent}..."] + [""] * (end - start)
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text("\n".join(lines), encoding="utf-8")
    return questions
