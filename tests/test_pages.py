"""README.md and the pages of docs work as they are written: their blocks run, their links lead somewhere."""

import hashlib
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages import (
    INSTALLS,
    ROOT,
    Block,
    Reader,
    SampleProject,
    check_settings,
    clean_variables,
    list_blocks,
    list_pages,
    list_problems,
    matches,
    open_provider,
)

DEEP = os.environ.get("HANDRAIL_DEEP", "") not in {"", "0"}
README = ROOT / "README.md"
PAGES = [page for page in list_pages() if page != README]
ALL = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)")
DAILY_COMMANDS = 8
"""The commands and programs of pages that run every day, besides those of the tutorial. Each takes about 0.4 s."""
MAX_NOT_RUN = 17
"""Blocks that cannot run here. Each has its reason on the page."""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def todays(pages: list[Path]) -> list[Path]:
    """The pages that run: all in a deep run; every day the tutorial and a share that follows from their texts."""
    drawn, commands = list[Path](), 0
    for page in sorted(pages, key=lambda page: hashlib.sha256(page.read_bytes()).digest()):
        own = 0 if page.stem == "tutorial" else count_commands(page)
        if DEEP or own == 0 or commands + own <= DAILY_COMMANDS:
            drawn.append(page)
            commands += own
    return sorted(drawn)


def count_commands(page: Path) -> int:
    """How many commands and programs a page runs."""
    blocks = [block for block in list_blocks(page) if "not run" not in block.marks]
    shells = sum(
        block.text.count("handrail ") for block in blocks if block.language in {"sh", "console", "setup", "let"}
    )
    return shells + 2 * sum(block.language == "python" or "press" in block.marks for block in blocks)


@pytest.fixture(scope="module")
def variables() -> Iterator[dict[str, str]]:
    wire = open_provider()
    yield clean_variables() | wire.environment
    wire.close()
    assert wire.problems == []


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory, variables: dict[str, str]) -> SampleProject:
    return SampleProject(tmp_path_factory.mktemp("sample"), variables)


@pytest.mark.parametrize("page", todays(PAGES), ids=name)
def test_every_block_of_the_page_runs_in_its_order(page: Path, sample: SampleProject) -> None:
    reader = sample.open_reader()
    for block in list_blocks(page):
        reader.run(block)


def test_every_command_and_program_of_the_readme_runs_in_its_order(tmp_path: Path, variables: dict[str, str]) -> None:
    (tmp_path / "home").mkdir()
    subprocess.run(["git", "clone", "-q", publish(tmp_path / "origin.git"), tmp_path / "clone"], check=True)
    reader, shop = Reader(tmp_path, tmp_path / "clone", variables), tmp_path / "home/shop"
    for block in list_blocks(README)[1:]:  # the screen at the top has a test of its own
        reader.run(block)
    assert "handrail" in (shop / ".mcp.json").read_text()
    assert sorted(path.name for path in shop.glob("prices.*")) == ["prices.old", "prices.sh"], "the page undoes it all"


def test_the_screen_of_the_readme_is_a_real_prompt(tmp_path: Path, variables: dict[str, str]) -> None:
    (tmp_path / "home/shop/src").mkdir(parents=True)
    for path, text in {
        "src/old.py": "a = 1\nb = 2\n",
        "src/total.py": "def total(x):\n\treturn x\n",
        "Makefile": "fmt:\n\t@rm src/old.py; echo 'RATE = 7' >src/tax.py; sed -i 's/\\t/    /' src/total.py\n"
        "\t@echo '1 file reformatted, 1 file left unchanged'\n",
    }.items():
        (tmp_path / "home/shop" / path).write_text(text)
    screen = next(block for block in list_blocks(README) if block.language == "text")
    Reader(tmp_path, tmp_path / "home/shop", variables).run(screen._replace(marks={"press": "y"}))


def publish(folder: Path) -> Path:
    """Makes a repository of the files as they are now, committed or not."""
    environment = os.environ | {"GIT_DIR": str(folder), "GIT_WORK_TREE": str(ROOT), "GIT_CONFIG_GLOBAL": os.devnull}
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "gc.auto=0", "-c", "core.looseCompression=0"]
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    for words in (["add", "-A", "."], ["commit", "-q", "-m", "As it is"]):
        subprocess.run(["git", *who, *words], cwd=ROOT, env=environment, check=True)
    return folder


@pytest.mark.parametrize("page", [README, *PAGES], ids=name)
def test_every_block_can_be_read(page: Path, tmp_path: Path) -> None:
    blocks = list_blocks(page)
    shown = page == README  # its screen has a test of its own
    assert [problem for block in blocks[shown:] for problem in list_problems(block)] == []
    for block in blocks:
        if block.language == "toml" and "not run" not in block.marks:
            check_settings(block, tmp_path)
    fences = re.findall(r"^ *```", page.read_text(), re.MULTILINE)
    assert len(fences) == 2 * sum(block.language not in {"setup", "let"} for block in blocks), "a fence is open"
    prose = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert not re.search(r"\n\n    \S", prose), "code in a fence can run, indented code cannot"


def test_few_blocks_do_not_run() -> None:
    left = {
        block.place: block.marks["not run"] for page in PAGES for block in list_blocks(page) if "not run" in block.marks
    }
    assert len(left) <= MAX_NOT_RUN, left
    assert all(len(reason.split()) >= 2 for reason in left.values()), left
    assert not any("not run" in block.marks for block in list_blocks(README))


def test_only_the_installation_is_replaced() -> None:
    [installed] = [found for block in list_blocks(README) for found in INSTALLS.findall(block.text)]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(installed[1].split(",")) <= set(extras)


def test_a_block_that_fails_is_seen(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    reader = Reader(tmp_path, tmp_path, clean_variables())
    reader.run(Block("a page", 1, "console", "$ echo one; echo two\none\n…\n", {}))
    for language, text in (
        ("sh", "false\ntrue\n"),
        ("python", "await nothing()\n"),
        ("console", "$ echo one\ntwo\n"),
        ("let", "8f2 = true"),
    ):
        with pytest.raises(AssertionError, match="a page:7"):
            reader.run(Block("a page", 7, language, text, {}))


def test_output_is_compared_but_for_times() -> None:
    assert matches("exit 0 in 0.04 s.\n … end", "exit 0 in 1.2 s. and the\nend")
    assert not matches("exit 0 in 0.04 s.", "exit 1 in 0.04 s.")


# Links


def headings(page: Path) -> set[str]:
    """The names that a page's headings have in links."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", ALL, ids=name)
def test_a_link_leads_to_something(page: Path) -> None:
    for path, part in LINK.findall(page.read_text()):
        target = page.parent / path if path else page
        assert target.exists(), f"{name(page)} links to {path}"
        assert not part or target.suffix != ".md" or part in headings(target), f"{name(page)} links to {path}#{part}"
        if page.is_relative_to(ROOT / "docs"):
            assert target.resolve().is_relative_to(ROOT / "docs"), f"{path} is not on the site"


def test_every_page_is_in_the_navigation_once() -> None:
    listed = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(ROOT / "docs")) for page in ROOT.glob("docs/**/*.md"))


def test_every_page_that_the_code_names_is_there() -> None:
    for path in sorted([*ROOT.glob("src/**/*.py"), *ROOT.glob("scripts/*")]):
        if path.is_file():
            for named in re.findall(r"\bdocs/(?:how-to|concepts|reference)/[\w-]+\.md", path.read_text()):
                assert (ROOT / named).exists(), f"{name(path)} names {named}"
