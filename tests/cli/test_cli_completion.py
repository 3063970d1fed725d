"""Scripts that complete command lines in bash, zsh and fish."""

import subprocess
from pathlib import Path

import pytest

from handrail.cli.parser import COMMANDS
from people import Program


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


TYPED = [("handrail approv", "approvals"), ("handrail exec --yield", "--yield-ms"), ("handrail call gre", "grep")]


@pytest.mark.parametrize(("line", "completed"), TYPED, ids=["command", "option", "tool"])
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_a_command_an_option_and_a_tool(
    here, workspace: Path, environment: dict[str, str], shell: str, line: str, completed: str
) -> None:
    script = workspace.parent / "script"
    script.write_text(here("completion", shell).out)
    interactive = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}
    if shell == "fish":
        command = f"source {script}; complete -C {line!r}"
        done = subprocess.run(
            ["fish", "--no-config", "-c", command],
            check=False,
            env=environment,
            cwd=workspace,
            capture_output=True,
            text=True,
        )
        assert (done.stdout.split("\t")[0].strip(), done.stderr) == (completed, "")
        return
    program = Program([shell, *interactive[shell]], workspace, {**environment, "TERM": "dumb", "PS1": "> "})
    try:
        ready = "autoload -U compinit; compinit -u -D; " if shell == "zsh" else ""
        program.terminal.press(f"{ready}source {script}; echo rea''dy; handrail() {{ echo got: $*; }}\n".encode())
        program.terminal.sees("ready\n")
        program.terminal.press(f"{line}\t\n".encode())
        given = line.split()[1:-1]
        program.terminal.sees(f"got: {' '.join((*given, completed))}\n")
    finally:
        program.close()


def test_fish_gets_the_lines_of_help_and_the_options(here) -> None:
    lines = here("completion", "fish").out.splitlines()
    assert "complete -c handrail -n __fish_use_subcommand -a undo -d" in " ".join(lines)
    seen = "'__fish_seen_subcommand_from approvals; and __fish_seen_subcommand_from allow'"
    assert f"complete -c handrail -n {seen} -l scope" in lines


def test_another_shell_is_refused_with_those_that_there_are(here) -> None:
    done = here("completion", "tcsh")
    assert (done.code, done.out) == (2, "")
    assert all(shell in done.err for shell in ("bash", "zsh", "fish"))
