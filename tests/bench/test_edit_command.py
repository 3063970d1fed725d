"""The command edit-cases: where its paths start, and what it says of those that cannot be used."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bench.edit.__main__ import main

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The script in a copy of the project's root, with the environment of this run."""
    root = tmp_path / "project"
    (root / "scripts").mkdir(parents=True)
    (root / "bench").symlink_to(ROOT / "bench")
    (root / "handrail").symlink_to(ROOT / "src" / "handrail")
    (root / "scripts" / "environment").write_text(f'PATH="{Path(sys.executable).parent}:$PATH"\n')
    shutil.copy(ROOT / "scripts" / "edit-cases", root / "scripts")
    return root / "scripts" / "edit-cases"


def test_paths_start_where_the_person_stands(script: Path, repository: Path, tmp_path: Path) -> None:
    stands = tmp_path / "elsewhere"
    stands.mkdir()
    (stands / "random.py").write_text("raise SystemExit('what lies here is not imported')\n")
    (stands / "history").symlink_to(repository)
    before = sorted(os.listdir(script.parent.parent))
    for words in (
        ("make", "cases.jsonl", "python:history/.git", "--per-kind", "1"),
        ("score", "cases.jsonl", "--kind", "exact"),
    ):
        done = subprocess.run([script, *words], cwd=stands, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (stands / "cases.jsonl").stat().st_size > 0
    assert sorted(os.listdir(script.parent.parent)) == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("score", "none.jsonl"), "none.jsonl cannot be used: No such file or directory"),
        (("score", "."), ". cannot be used: Is a directory"),
        (("score", "text"), "line 2 of text is no case, make the file anew: JSON is malformed"),
        (("score", "other.json"), "line 1 of other.json is no case, make the file anew: Object missing required field"),
        (("score", "bytes"), "line 1 of bytes is no case, make the file anew: "),
        (
            ("make", "cases.jsonl", "python:folder"),
            "folder is no git repository; name a bare one, or the .git of a checkout",
        ),
        (("make", "none/cases.jsonl", "python:history"), "none/cases.jsonl cannot be used: No such file or directory"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(
    words: tuple[str, ...],
    told: str,
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "history").symlink_to(repository / ".git")
    (tmp_path / "text").write_text("\nsome text\n")
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "bytes").write_bytes(b'{"id": "\xff"}\n')
    monkeypatch.chdir(tmp_path)
    assert main([*words, *(("--per-kind", "1") if words[0] == "make" else ())]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    said = [line for line in err.splitlines() if not line.startswith("edit-cases: history: ")]
    assert [line for line in said if told in line] == said[-1:]
    assert said[-1].startswith(f"edit-cases: {told}")
    assert not (tmp_path / "cases.jsonl").exists()
