"""scripts/prose: the texts are plain, and a planted fault is found."""

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
MOST_UNCONVERTED = 0
"""Lower this when a page is converted."""


def load_rules() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prose_rules", ROOT / "scripts" / "prose_rules.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["prose_rules"] = module
    spec.loader.exec_module(module)
    return module


rules = load_rules()


def faults_of(text: str) -> list[str]:
    return list(rules.measure_page(text).list_faults())


def test_the_texts_of_this_tree_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    assert rules.main(["--check"]) == 0, capsys.readouterr().out


def test_the_list_of_pages_not_converted_only_shrinks() -> None:
    assert len(rules.UNCONVERTED) == MOST_UNCONVERTED


def test_a_plain_page_has_no_fault() -> None:
    assert faults_of("# Undo\n\nhandrail undoes the last change.\n\n```sh\nhandrail undo\n```\n") == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("The client is told of it.", 'forbidden: "is told"'),
        ("- One.\n- Nobody asks.", 'forbidden: "Nobody"'),
        ("| a | b |\n|---|---|\n| one | there is none |", 'forbidden: "there is none"'),
        ("It keeps what waits. It shows what ran.", '"what" 250.0 times per 1,000 words; at most 8'),
        (f"A sentence {'of very many words ' * 8}ends here.", "36.0 words in a sentence; at most 18"),
        (f"```sh\nhandrail {'x' * 80}\n```", "code wider than 80 columns in lines 2"),
        (f"Code:\n\n    handrail {'x' * 80}\n", "code wider than 80 columns in lines 3"),
    ],
)
def test_a_fault_of_a_page_is_found(text: str, fault: str) -> None:
    assert fault in faults_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "`nobody` is the name of a user.",
        "```\nthe client is told\n```",
        "<!-- nobody -->",
        "Did it work? What is next?",
    ],
)
def test_code_comments_and_questions_are_exempt(text: str) -> None:
    assert faults_of(text) == []


@pytest.mark.parametrize(
    "code",
    [
        'raise ToolError("IO_ERROR", f"nobody has {name}")',
        'raise protocol.UsageError("one " "nobody")',
        'parser.add_argument("--all", help="what nobody reads")',
        'decide(reason="nobody asks" if late else "")',
        'COMMANDS: dict[str, tuple[str, str]] = {"log": ("log", "Show what nobody reads.")}',
    ],
)
def test_a_message_of_the_code_is_checked(code: str) -> None:
    [fault] = rules.list_message_faults(list(rules.list_messages(ast.parse(code), "a.py")))
    assert fault.startswith('a.py:1: forbidden: "nobody"')


def test_other_strings_of_the_code_are_not_messages() -> None:
    assert list(rules.list_messages(ast.parse('user = "nobody"\nfind("nobody")'), "a.py")) == []


def test_a_replaced_sentence_that_comes_back_is_found_across_lines() -> None:
    code = 'TEXT = (\n    "of the network it has "\n    "what a person opened"\n)\n'
    assert rules.list_replaced({"a.py": code}) == ['a.py: "of the network it has what a person opened" was replaced']


def test_a_page_that_passes_must_leave_the_list(tmp_path: Path) -> None:
    for name in ("README.md", "CONTRIBUTING.md", "THREAT_MODEL.md"):
        (tmp_path / name).write_text("A page.\n")
    (tmp_path / "docs").mkdir()
    assert rules.list_page_faults(tmp_path, frozenset({"README.md"})) == [
        "README.md: passes; remove it from UNCONVERTED in scripts/prose_rules.py"
    ]


def test_a_readme_that_is_too_long_is_a_fault() -> None:
    assert list(rules.check_readme("word\n" * 151)) == ["README.md: 151 lines, 151 words; at most 150 and 700"]
