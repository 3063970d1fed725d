"""Scripts that complete command lines in bash, zsh and fish."""

import shutil
import subprocess
from pathlib import Path

import pytest

from handrail.cli.parser import COMMANDS


def complete(script: str, *words: str) -> set[str]:
    """What bash offers for the last of the words."""
    line = " ".join(f"'{word}'" for word in ("handrail", *words))
    program = f'{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _handrail; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.fixture
def script(here) -> str:
    return here("completion", "bash").out


OFFERED = [
    (("",), {"run", "approvals", "policy", "help", "version", "completion"}),
    (("app",), {"approvals"}),
    (("approvals", ""), {"allow", "deny", "show"}),
    (("approvals", "al"), {"allow"}),
    (("approvals", "allow", "--s"), {"--scope"}),
    (("approvals", "allow", "8f2", "--out"), {"--output-only"}),
    (("policy", "ex"), {"explain"}),
    (("call", "re"), {"read"}),
    (("read", "a.txt", "--off"), {"--offset"}),
    (("config", "limits.ex"), {"limits.exec"}),
    (("help", "und"), {"undo"}),
    (("completion", "z"), {"zsh"}),
    (("nothing", "--js"), set[str]()),
]


@pytest.mark.parametrize(("words", "offered"), OFFERED)
def test_bash_offers_commands_options_tools_and_settings(
    script: str, words: tuple[str, ...], offered: set[str]
) -> None:
    found = complete(script, *words)
    assert found == offered if words[-1] else found >= offered


def test_every_command_is_completed(script: str) -> None:
    assert complete(script, "") >= {name.split()[0] for name in COMMANDS}
    for name in COMMANDS:
        assert {"--help", "--quiet"} <= complete(script, *name.split(), "--")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_the_shell_reads(here, shell: str, tmp_path: Path) -> None:
    done = here("completion", shell)
    assert (done.code, done.err) == (0, "")
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(done.out)
    subprocess.run([shell, "-n", tmp_path / "script"], check=True)


def test_fish_gets_the_lines_of_help_and_the_options(here) -> None:
    lines = here("completion", "fish").out.splitlines()
    assert "complete -c handrail -n __fish_use_subcommand -a undo -d" in " ".join(lines)
    seen = "'__fish_seen_subcommand_from approvals; and __fish_seen_subcommand_from allow'"
    assert f"complete -c handrail -n {seen} -l scope" in lines


def test_another_shell_is_refused_with_those_that_there_are(here) -> None:
    done = here("completion", "tcsh")
    assert (done.code, done.out) == (2, "")
    assert all(shell in done.err for shell in ("bash", "zsh", "fish"))
