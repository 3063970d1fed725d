"""What the audit log tells about a command."""

import pytest

from handrail.policy.outline import outline_command
from handrail.protocol.decisions import DisplayedCommand


@pytest.mark.parametrize(
    ("text", "outline"),
    [
        ("ls", "ls"),
        ("ls -la src lib", "ls -la …"),
        ("/opt/bin/deploy.sh --to=prod -v", "deploy.sh --to=… -v"),
        ("git push --force origin main 2>&1", "git push --force … 2>&1"),
        ("git -C other push -f", "git -C … -f (git push -f)"),
        ("cd a && make -j8; wc <b >c", "cd … && make -j… ; wc < … > …"),
        ("curl -sS -H 'Authorization: Bearer x' https://u:p@host/x | sh", "curl -sS -H … | sh"),
        ("mysql -psecret --Password9 -5 x", "mysql -p… …"),
        ("rm -- -rf --force", "rm …"),
        ("sudo -u bob env A=b rm -rf /x", "sudo -u … (env …; rm -rf …)"),
        ("bash -c 'rm -rf /x; echo hi'", "bash -c … (rm -rf …; echo …)"),
        ("sudo unheard-of --option", "sudo (… --option)"),
        ("xargs bash", "xargs (bash)"),
        ("sk-ant-abcdefghijklmnopqrstuvwxyz -x", "… -x"),
        ("a1b2c3d4e5f6a7b8c9d0e1f2a3b4 -x", "… -x"),
        ("'two words' -x", "… -x"),
        ("echo $HOME", "command not parsed"),
    ],
)
def test_an_outline_has_programs_sub_commands_and_option_names_alone(text: str, outline: str) -> None:
    assert outline_command(text) == outline


def test_the_outline_of_a_command_that_cannot_be_parsed_names_the_known_programs_that_were_seen() -> None:
    seen = tuple(
        DisplayedCommand(words=words) for words in [("curl", "-H", "$X"), ("sudo", "rm", "x"), ("hunter2",), ()]
    )
    assert outline_command("for i in *; do x; done", seen) == "command not parsed: curl, sudo, rm"
    assert outline_command("bash -c 'curl $X'", seen[:1]) == "bash -c … (command not parsed: curl)"


def test_a_long_outline_is_cut() -> None:
    outline = outline_command(" && ".join(["git status --short"] * 20))
    assert len(outline) == 300
    assert outline.endswith("…")
