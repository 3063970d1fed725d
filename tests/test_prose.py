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


def test_the_texts_of_this_tree_are_plain(capsys: pytest.CaptureFixture[str], deep: bool) -> None:
    if not deep:
        pytest.skip("scripts/check does it")
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
        ("handrail keeps what waits. handrail shows what ran.", '"what" 250.0 times per 1,000 words; at most 8'),
        (f"A sentence {'of very many words ' * 8}ends here.", "36.0 words in a sentence; at most 18"),
        (f"```sh\nhandrail {'x' * 80}\n```", "code wider than 80 columns in lines 2"),
        (f"Code:\n\n    handrail {'x' * 80}\n", "code wider than 80 columns in lines 3"),
    ],
)
def test_a_fault_of_a_page_is_found(text: str, fault: str) -> None:
    assert fault in faults_of(text)


@pytest.mark.parametrize(
    "start",
    [
        "It runs once.",
        "They run once.",
        "Its output stays.",
        "So does a link.",
        "This also counts.",
        "Those ask.",
        "One that hangs ends.",
        "Then it ends.",
        "- It runs once.",
        "**They** run once.",
    ],
)
def test_too_many_sentences_that_begin_with_a_pronoun_are_a_fault(start: str) -> None:
    [fault] = faults_of("handrail runs it. " * 9 + f"\n\n{start}\n")
    assert fault == f"10.0 of 100 sentences begin with a pronoun; at most {rules.MAX_ORPHANS:.0f}"


@pytest.mark.parametrize(
    "start",
    [
        "This page is short.",
        "One call runs.",
        "So the call ends.",
        "Then handrail ends.",
        "If it runs, it ends.",
        "Item one.",
        "| It runs | once |",
        "```\nIt runs.\n```",
    ],
)
def test_a_sentence_that_names_its_subject_is_no_fault(start: str) -> None:
    assert faults_of(f"{start}\n") == []


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
        'raise ToolError("IO_ERROR", f"of the {name} nobody")',
        'raise protocol.UsageError("one is " "nobody")',
        'parser.add_argument("--all", help="what nobody is reading")',
        'decide(reason="nobody asks for it" if late else "")',
        'TEXT = "this is read by nobody"',
        'TABLE = {"a": ("b", "this is read by nobody")}',
        'def say() -> str:\n    return f"this is {read} by nobody"'.replace("\n   ", ""),
        'class Row(Struct): text: str = "this is read by nobody"',
        'COMMANDS: dict[str, tuple[str, str]] = {"log": ("log", "Show this to nobody.")}',
    ],
)
def test_a_message_of_the_code_is_checked(code: str) -> None:
    [fault] = rules.list_message_faults(list(rules.list_messages(ast.parse(code), "a.py")))
    assert fault.startswith('a.py:1: forbidden: "nobody"')


@pytest.mark.parametrize(
    "code",
    [
        'user = "nobody"\nfind("nobody")',
        '"""It is told."""',
        're.compile("is told of it")',
        'run("SELECT a FROM is_told of")',
    ],
)
def test_names_docstrings_patterns_and_sql_are_no_messages(code: str) -> None:
    assert list(rules.list_messages(ast.parse(code), "a.py")) == []


def test_a_forbidden_phrase_is_found_in_a_short_string() -> None:
    [message] = rules.list_messages(ast.parse('state = "switched off"'), "a.py")
    assert rules.list_message_faults([message]) == ['a.py:1: forbidden: "switched off" in "switched off"']


def test_a_long_sentence_of_a_message_is_found_and_a_table_of_options_is_none() -> None:
    def list_long(text: str) -> list[str]:
        return list(rules.list_long_sentences([rules.Message("a.py", 1, text)]))

    words = "it is one of the words " * 5
    assert list_long(f"Short. {words}.") == [f'a.py:1: 30 words in "{words[:80]}"; at most 25']
    assert list_long("\n    all author not ignore" * 10) == list_long("verbose quiet checksum archive " * 9) == []


def test_the_system_prompt_is_a_page_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "tests/agent/prompts").mkdir(parents=True)
    (tmp_path / "tests/agent/prompts/base.md").write_text("Say what could not be done.\n")
    assert "tests/agent/prompts/base.md" in rules.list_pages(tmp_path)


def test_a_generated_page_is_checked_except_for_the_width_of_its_code(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text(f"{rules.GENERATED} a -->\n\nThe client is told.\n\n```sh\n{'x' * 90}\n```\n")
    for name in ("README.md", "CONTRIBUTING.md", "THREAT_MODEL.md", "ARCHITECTURE.md", "CHANGELOG.md"):
        (tmp_path / name).write_text("A page.\n")
    assert rules.list_page_faults(tmp_path, frozenset()) == ['docs/a.md: forbidden: "is told"']


def test_a_replaced_sentence_that_comes_back_is_found_across_lines() -> None:
    code = 'TEXT = (\n    "of the network it has "\n    "what a person opened"\n)\n'
    assert rules.list_replaced({"a.py": code}) == ['a.py: "of the network it has what a person opened" was replaced']


def test_a_page_that_passes_must_leave_the_list(tmp_path: Path) -> None:
    for name in ("README.md", "CONTRIBUTING.md", "THREAT_MODEL.md", "ARCHITECTURE.md", "CHANGELOG.md"):
        (tmp_path / name).write_text("A page.\n")
    (tmp_path / "docs").mkdir()
    assert rules.list_page_faults(tmp_path, frozenset({"README.md"})) == [
        "README.md: passes; remove it from UNCONVERTED in scripts/prose_rules.py"
    ]


def test_a_readme_that_is_too_long_is_a_fault() -> None:
    assert list(rules.check_readme("word\n" * 151)) == ["README.md: 151 lines, 151 words; at most 150 and 700"]
