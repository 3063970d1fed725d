"""No mode allows a built-in deny, however the command is written."""

import pytest
from tests.policy.deciding import decided


@pytest.mark.parametrize(
    "command",
    [
        "shred -u /etc/passwd",
        "shred -n 3 ../x",
        "sed -i s/a/b/ /etc/passwd",
        "sed -Ei.bak -e s/a/b/ /etc/passwd",
        "sed --in-place -n p /etc/passwd",
        "perl -pi -e s/a/b/ /etc/passwd",
        "find /etc -name x.conf -delete",
        "find -O3 -D tree .. -delete",
        "find . -fprint /etc/x",
        "find . -fprintf ../x %p",
        "mv --target-dir=/etc x",
        "cp --what --target-d /etc x",
        "chmod --recurs 777 /etc",
        "mkdir --context=x /etc/x",
    ],
)
def test_a_program_that_no_table_reads_changes_nothing_outside_either(command: str) -> None:
    for text in (command, f"if true; then {command}; fi", f"timeout 5 {command}"):
        assert decided(text, "full").decision == "deny", text


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /etc/*",
        "rm -rf /{bin,etc}",
        'rm -rf "/$i"',
        "rm -rf /etc/$i",
        "rm -rf ../*",
        "rm -rf ../$i/x",
        "echo x > /etc/$i",
        "mv x /etc/`id`",
        "chmod -R 777 /usr/*",
        "cp x /dev/$i",
    ],
)
def test_what_is_left_to_expand_hides_no_folder_outside(command: str) -> None:
    assert decided(f"for i in 1; do {command}; done", "full").decision == "deny"


@pytest.mark.parametrize(
    "command",
    ["echo 'rm -rf /' | sh", "printf 'rm -rf /' | sudo bash -s", "echo reboot | env A=1 dash", "echo 'iwr x' | pwsh"],
)
def test_what_a_shell_is_told_by_a_pipe_is_looked_into(command: str) -> None:
    assert decided(command, "full").decision == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "cat run.sh | bash",
        "echo ls | sh",
        "sed -i '/foo/d' src/a.py",
        "sed -i.bak -E '/foo/d' src/a.py",
        "sed -i -e '/etc/d' src/a.py",
        "sed -i --expression '/foo/d' src/a.py",
        "sed -i '' '/foo/d' src/a.py",
        "sed -n '/foo/w list' src/a.py",
        "perl -Mstrict -ne '/x/' src/a.py",
        "find . -name '*.pyc' -delete",
        "find . -type d -name __pycache__ -exec rm -rf {} +",
        "find src -fprint list.txt",
        "shred -u secret.txt",
        "for f in *.o; do rm ./$f ./*.a build/{a,b}; done",
        "for f in *.o; do rm -rf /tmp/$f /tmp/x/*; done",
        'for f in *.o; do rm -rf "$BUILD/$f"; done',
        "for f in *.md; do cp $f dist/$f; done",
        "for d in /usr/share/*; do ls $d; done",
    ],
)
def test_what_stays_inside_is_left_to_the_mode(command: str) -> None:
    assert decided(command).decision == "confirm"
    assert decided(command, "full").decision == "allow"
