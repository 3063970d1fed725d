"""The score of edits: the bytes of the file decide."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from bench.edit.__main__ import main
from bench.edit.case import Case, Expectation, Splice, write_cases
from bench.edit.report import shown
from bench.edit.score import Editor, Said, judged, score_of, verdicts


def perfect(path: Path, case: Case) -> Said:
    path.write_bytes(case.right[0])
    return Said(case.positive, "")


def idle(_path: Path, _case: Case) -> Said:
    return Said(False, "no")


def careless(path: Path, case: Case) -> Said:
    path.write_bytes(case.before + b"#")
    return Said(True, "done")


def liar(_path: Path, _case: Case) -> Said:
    return Said(True, "done")


def broken(_path: Path, _case: Case) -> Said:
    raise RuntimeError("broken")


@pytest.mark.parametrize(
    ("editor", "positive", "negative"),
    [
        (perfect, "correct", "kept"),
        (idle, "refused", "kept"),
        (careless, "WRONG", "WRONG"),
        (liar, "LIED", "LIED"),
        (broken, "CRASH", "CRASH"),
    ],
)
def test_editors_get_what_they_deserve(
    cases: list[Case], tmp_path: Path, editor: Editor, positive: str, negative: str
) -> None:
    score = score_of(verdicts(cases, editor, tmp_path))
    assert score.positive.counts == Counter({positive: sum(case.positive for case in cases)})
    assert score.negative.counts == Counter({negative: sum(not case.positive for case in cases)})
    assert score.passes(0) == (editor in {perfect, idle})
    assert score.passes(100) == (editor is perfect)
    assert not list(tmp_path.iterdir())


def case_of(file: str, *right: str, encoding: str = "utf-8") -> Case:
    splices = tuple((Splice(0, len(file), text),) for text in right)
    expect = Expectation("apply" if right else "refuse", splices)
    return Case("one", "made", "a.txt", file, file.strip(), "new", expect, encoding=encoding)  # pyright: ignore


@pytest.mark.parametrize(
    ("case", "after", "outcome"),
    [
        (case_of("a\n", "b c\n"), b"b c\n", "correct"),
        (case_of("a\n", "b c\n", "d\n"), b"d\n", "correct"),
        (case_of("a\n", "a\n", "d\n"), b"a\n", "correct"),
        (case_of("a\n", "b c\n"), b"a\n", "refused"),
        (case_of("a\n", "b c\n"), b"b  c\n", "ws"),
        (case_of("a\n", "b c\n"), b"b c\r\n", "ws"),
        (case_of("a\n", "b c\n"), b"b c", "ws"),
        (case_of("a\n", "b c\n"), b"b d\n", "WRONG"),
        (case_of("a\n", "b c\n"), b"", "WRONG"),
        (case_of("a\n"), b"a\n", "kept"),
        (case_of("a\n"), b"a \n", "WRONG"),
        (case_of("a", "é", encoding="latin-1"), b"\xe9", "correct"),
        (case_of("a", "é", encoding="latin-1"), "é".encode(), "WRONG"),
        (case_of("a", "b", encoding="utf-8-sig"), b"\xef\xbb\xbfb", "correct"),
        (case_of("a", "b", encoding="utf-8-sig"), b"b", "WRONG"),
        (case_of("a", "b", encoding="utf-16-be"), b"\xfe\xff\0b", "correct"),
        (case_of("a", "b", encoding="utf-16-be"), b"\xfe\xff\0b\0\n", "ws"),
        (case_of("a", "b", encoding="utf-16-be"), b"b", "WRONG"),
    ],
)
def test_the_bytes_decide(case: Case, after: bytes, outcome: str) -> None:
    assert judged(case, after) == outcome


def test_a_failure_is_shown_with_what_was_sent_and_what_is_wrong(tmp_path: Path) -> None:
    (verdict,) = verdicts([case_of("a\n", "b\n")], careless, tmp_path)
    text = shown(verdict)
    assert "--- one (a.txt): WRONG\ndone\noldText 'a'\nnewText 'new'" in text
    assert text.endswith("\n-b\n-\n+a\n+#")


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    """Writes cases to a file; its name."""

    def write(*cases: Case) -> str:
        write_cases(tmp_path / "cases.jsonl", cases)
        return str(tmp_path / "cases.jsonl")

    return write


GOOD = case_of("old\n", "new\n")
BAD = case_of("old\n", "something else\n")
MISSED = Case("two", "other", "a.txt", "file\n", "old", "new", Expectation("apply", ((Splice(0, 4, "new"),),)))


@pytest.mark.parametrize(
    ("cases", "options", "status"),
    [
        ((GOOD,), ("--at-least", "100"), 0),
        ((GOOD, MISSED), ("--at-least", "50"), 0),
        ((GOOD, MISSED), ("--at-least", "51"), 1),
        ((GOOD, MISSED), ("--at-least", "51", "--kind", "made"), 0),
        ((GOOD, BAD), (), 1),
        ((GOOD,), ("--kind", "unheard of"), 1),
    ],
)
def test_the_exit_status_says_whether_it_is_good_enough(
    written: Callable[..., str], cases: tuple[Case, ...], options: tuple[str, ...], status: int
) -> None:
    assert main(["score", written(*cases), *options]) == status


def test_the_score_is_a_table_or_json(written: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["score", written(GOOD, MISSED), "--show", "1"])
    table = capsys.readouterr().out
    assert "--- two (a.txt): refused" in table
    assert "made                         100.0 %  correct 1\n" in table
    main(["score", written(GOOD, MISSED), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["kinds"]["other"] == {"cases": 1, "percent": 0.0, "refused": 1}
    assert told["positive"] == {"cases": 2, "percent": 50.0, "correct": 1, "refused": 1}


def test_cases_are_made_and_scored_by_the_command_line(repository: Path, tmp_path: Path) -> None:
    cases = str(tmp_path / "cases.jsonl")
    assert main(["make", cases, f"python:{repository}/.git", "--per-kind", "1"]) == 0
    assert main(["score", cases, "--kind", "exact", "--kind", "neg_several", "--at-least", "100"]) == 0


def test_a_repository_without_files_of_the_language_makes_nothing(repository: Path, tmp_path: Path) -> None:
    assert main(["make", str(tmp_path / "cases.jsonl"), f"rust:{repository}/.git"]) == 1
    assert not (tmp_path / "cases.jsonl").exists()


@pytest.mark.parametrize("repository", ["python", "python:/nowhere", "cobol:/"])
def test_a_repository_is_a_language_and_a_folder(repository: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["make", "cases.jsonl", repository])
    assert "is not LANGUAGE:GITDIR" in capsys.readouterr().err
