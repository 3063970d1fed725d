"""codebase_search finds the function of a docstring more often than ripgrep and BM25 over whole files."""

import sysconfig
from pathlib import Path

from bench.code_search import GOAL, copy_without_docs, score_all

PACKAGES = ("packaging", "attr", "tomlkit", "jsonschema")


def test_the_function_of_a_docstring_is_found_more_often_than_by_its_words_alone(tmp_path: Path, deep: bool) -> None:
    packages = Path(sysconfig.get_path("purelib"))
    tree = tmp_path / "tree"
    questions = copy_without_docs(packages, tree, 500 if deep else 50, () if deep else PACKAGES)
    assert len(questions) == (500 if deep else 50)
    scores = score_all(tree, tmp_path / "state", questions)
    ours, others = scores.pop("codebase_search"), list(scores.values())
    for level, least in (("function", GOAL), ("file", 1.0)):
        assert ours[level].mrr >= least * max(other[level].mrr for other in others), (level, ours, others)
        assert ours[level].recall >= least * max(other[level].recall for other in others), (level, ours, others)
