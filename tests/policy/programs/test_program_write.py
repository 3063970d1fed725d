"""Programs that write or delete what they name: which paths, and what needs approval."""

import pytest
from tests.policy.programs.support import list_example_faults, read, used

from handrail.policy.programs import classes, write
from handrail.policy.programs.registry import build_registry
from handrail.policy.programs.spec import ProgramSpec


@pytest.mark.parametrize("table", [*write.TABLES, *classes.VERSIONS], ids=lambda table: table.name)
def test_every_table_has_examples_and_they_hold(table: ProgramSpec) -> None:
    assert table.match
    assert table.no_match
    assert list_example_faults(table, build_registry()) == []


@pytest.mark.parametrize(
    ("command", "effect", "paths"),
    [
        ("rm -rf a b", "delete", ["d a", "d b"]),
        ("rm -f src/*.pyc", "delete", ["d* src/*.pyc"]),
        ("rmdir a", "delete", ["d a"]),
        ("unlink a", "delete", ["d a"]),
        ("mv a b", "write", ["d a", "w b", "w~ b/a"]),
        ("mv x/a y/", "write", ["d x/a", "w y/", "w~ y/a"]),
        ("mv -t dir a", "write", ["w dir", "d a", "w~ dir/a"]),
        ("mv --target-directory=dir a/", "write", ["w dir", "d a/", "w~ dir/a"]),
        ("cp a/handrail.toml .", "write", ["r a/handrail.toml", "w .", "w~ ./handrail.toml"]),
        ("cp -r . dst", "write", ["r .", "w dst"]),
        ("cp src/*.py dst", "write", ["r* src/*.py", "w dst"]),
        ("cp a /", "write", ["r a", "w /", "w~ /a"]),
        ("ln -s a b", "write", ["r a", "w b", "w~ b/a"]),
        ("ln -s /etc/passwd", "write", ["r /etc/passwd"]),
        ("ln -sr ../a b", "write", ["r ../a", "w b", "w~ b/a"]),
        ("ln ../a b", "write", ["r ../a", "w b", "w~ b/a"]),
        ("install -m 755 a bin", "write", ["r a", "w bin", "w~ bin/a"]),
        ("install -d a b*", "write", ["r a", "r* b*", "w* b*", "w a"]),
        ("rsync -a src/ dst/", "write", ["r src/", "w dst/"]),
        ("rsync -a --delete src dst", "write", ["r src", "w dst", "d dst"]),
        ("rsync -a --delete-after src dst/*", "write", ["r src", "r* dst/*", "w* dst/*", "d* dst/*"]),
        ("rsync -a --remove-source-files a b c", "write", ["r a", "r b", "w c", "d a", "d b"]),
        ("rsync --exclude-from=x a b", "write", ["r x", "r a", "w b"]),
        ("mkdir -p a/b", "write", ["w a/b"]),
        ("touch -r a b", "write", ["r a", "w b"]),
        ("tee -a log", "write", ["w log"]),
        ("tee /dev/stderr", "write", []),
        ("truncate -s 0 a", "write", ["w a"]),
        ("chmod +x a", "write", ["w a"]),
        ("chmod --reference=a b", "write", ["r a", "w b"]),
        ("chown -R me:us a", "write", ["w a"]),
        ("chgrp us a b", "write", ["w a", "w b"]),
        ("dd if=a of=b bs=1M", "write", ["r a", "w b"]),
        ("dd if=/dev/zero of=/dev/null", "write", []),
        ("dd of=/dev/sda", "write", ["w /dev/sda"]),
    ],
)
def test_what_is_read_written_and_deleted(command: str, effect: str, paths: list[str]) -> None:
    assert read(command).effect == effect
    assert sorted(used(command)) == sorted(paths)


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("rm --no-preserve-root -rf a", "exec.option"),
        ("cp --what a b", "exec.option"),
        ("cp --sparse -- -t x", "exec.option"),
        ("ln -s ../a bin/a", "exec.option"),
        ("ln -s -t bin ../a", "exec.option"),
        ("install -s a b", "exec.option"),
        ("install --strip-program=x a b", "exec.option"),
        ("dd if=a x=b", "exec.option"),
        ("dd if=a b", "exec.option"),
        ("dd if=a* of=b", "exec.option"),
        ("rsync -a a host:b", "exec.network"),
        ("rsync rsync://host/a b", "exec.network"),
        ("rsync -e ssh a b", "exec.network"),
        ("rsync --rsync-path=x a b", "exec.network"),
        ("rsync --daemon", "exec.network"),
        ("rsync -a h* b", "exec.network"),
    ],
)
def test_what_the_words_do_not_tell_asks(command: str, rule: str) -> None:
    found = read(command)
    assert found.effect in {"unproven", "network"}
    assert found.rule == rule


def test_a_colon_behind_a_slash_is_no_other_machine() -> None:
    assert read("rsync -a ./a:b dst").effect == "write"
