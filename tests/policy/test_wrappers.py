"""Commands inside a command that starts others."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.policy.builtin_denies import find_builtin_deny
from handrail.policy.wrappers import MAX_INNER_COMMANDS, list_inner_commands, unwrap


def words(text: str) -> tuple[str, ...]:
    return tuple(shlex.split(text))


@pytest.mark.parametrize(
    "command",
    [
        "env rm x", "env -i rm x", "env -u A -i B=c D=e rm x", "env --unset=A rm x", "env --chdir d rm x",
        "env -- rm x",
        "env -S 'rm x'", "env '-Srm x'", "env --split-string='rm x'", "env - rm x", "A=b rm x", "A=b C+=d rm x",
        "sudo rm x", "sudo -u root rm x", "sudo -nu root rm x", "sudo --user root A=b rm x", "sudo -- rm x",
        "doas -u a rm x",
        "/usr/bin/sudo rm x", "timeout 5 rm x", "timeout -k 1 5 rm x", "timeout --signal=KILL 5 rm x",
        "timeout -- 5 rm x",
        "timeout -s KILL 5s rm x", "nice rm x", "nice -n 5 rm x", "nice -10 rm x", "ionice -c 3 rm x", "nohup rm x",
        "setsid -f rm x", "stdbuf -oL rm x", "stdbuf -o L rm x", "time -p rm x", "chrt -f 10 rm x",
        "taskset -c 0,1 rm x",
        "strace -etrace=file rm x", "strace -f -o log rm x", "xargs rm x", "xargs -0 -n1 rm x", "xargs -I{} rm x",
        "xargs -I {} rm x", "xargs --max-args 1 rm x", "xargs -r rm x", "xargs -0n1 rm x", "find . -exec rm x ;",
        "find . -name a -execdir rm x +", "find . -ok rm x '\\;'", "fd -x rm x", "fd a --exec rm x",
        "parallel rm x ::: a b", "parallel rm {} ::: x", "env -a n rm x", "hyperfine -w 3 'rm x'", "screen -dm rm x",
        "tmux new -d 'rm x'", "direnv exec . rm x", "rustup run stable rm x", "gosu root rm x", "alias a='rm x'",
        "parallel -j 4 rm x", "command rm x", "command -p rm x", "exec rm x", "exec -a n rm x", "builtin rm x",
        "eval rm x", "eval 'rm x'", "bash -c 'rm x'", "sh -c 'rm x' name arg", "bash -lc 'rm x'",
        "bash --norc -c 'rm x'",
        "bash -o pipefail -c 'rm x'", "bash -c -e 'rm x'", "bash +o posix -c 'rm x'", "/bin/bash -ec 'rm x'",
        "bash --rcfile y -c 'rm x'", "su -c 'rm x'", "su root -c 'rm x'", "su - root --command='rm x'", "flock f rm x",
        "flock f -c 'rm x'", "flock -w 3 f rm x", "script -qc 'rm x' log", "script -c 'rm x'", "trap 'rm x' EXIT",
        "trap -- 'rm x' EXIT", "watch -n 1 rm x", "watch 'rm x'", "chroot d rm x", "unshare -r rm x", "entr -r rm x",
        "bwrap --ro-bind / / --dev /dev --unshare-all rm x", "bwrap --bind a b -- rm x", "systemd-run --user rm x",
        "busybox rm x", "busybox sh -c 'rm x'", "uv run rm x", "uv run --with a rm x", "poetry run rm x", "npx rm x",
        "npx -c 'rm x'", "npx -p a rm x", "bundle exec rm x", "git -c alias.a='!rm x' a", "nix-shell -p a --run 'rm x'",
        "find . -okdir rm x ';'", "fd -X rm x", "fd --exec-batch rm x", "fdfind -x rm x", "parallel 'rm x' ::: a",
        "parallel rm x ::::+ list", "bash -O extglob -c 'rm x'", "bash --init-file y -c 'rm x'",
        "bash -c -o posix 'rm x'", "'\\sudo' rm x", "concurrently 'rm x'", "screen -dm 'rm x'",
        "nodemon 'rm x'", "watchexec 'rm x'", "tmux new 'rm x'", "hyperfine 'rm x'", "parallel rm :::+ x",
        "'\\bash' -c 'rm x'",
        "coproc rm x", "pkexec rm x", "env sudo timeout 5 bash -c 'nice xargs rm x'", "sudo sh -c \"bash -c 'rm x'\"",
    ],
)  # fmt: skip
def test_the_command_inside_is_found(command: str) -> None:
    assert ("rm", "x") in list_inner_commands(words(command))


@pytest.mark.parametrize(
    "command",
    [
        "rm x", "command -v rm", "command -V rm", "bash", "bash rm x", "sh x.sh -c 'rm x'", "sudo", "sudo -u rm",
        "timeout 5",
        "timeout 5 --", "env", "env A=b", "xargs", "find . -name rm", "fd rm", "git log", "git rm x", "eval", "trap",
        "bash -c 'rm $X'", "bash -c", "su root", "script log", "npx -c", "", "git -C", "git -C a", "echo sudo rm x",
        "uv sync rm x", "poetry", "A=b", "bash -x", "git -c a=b", "parallel", "bash --norc 'rm x'", "bash +c 'rm x'",
        "bash -x 'rm x'", "bash -o", "bash -O", "watch", "trap ls 'rm x'", "./A=b rm x", "x-A=b rm x", "uv", "uv run",
        "tmux rm x",
    ],
)  # fmt: skip
def test_where_the_words_tell_of_none_there_is_none(command: str) -> None:
    assert ("rm", "x") not in list_inner_commands(words(command))
    assert not any(inner[0] == "rm" for inner in list_inner_commands(words(command)))


def test_all_that_runs_one_after_the_other_is_found() -> None:
    found = list_inner_commands(words("find . -exec rm a ; -exec sh -c 'rm b && rm c | rm d' ;"))
    assert {("rm", letter) for letter in "abcd"} <= set(found)


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("git -C x push o", ("git", "push", "o")),
        ("git -c a=b --no-pager -p push", ("git", "push")),
        ("git --git-dir x --work-tree=y push", ("git", "push")),
        ("git -p push", ("git", "push")),
        ("git --namespace x push", ("git", "push")),
    ],
)
def test_git_is_given_with_its_sub_command_first(command: str, inner: tuple[str, ...]) -> None:
    assert list_inner_commands(words(command)) == (inner,)


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("bash run.sh a b", [("./run.sh", "a", "b")]),
        ("bash x/run.sh a", [("x/run.sh", "a")]),
        ("bash /opt/run.sh", [("/opt/run.sh",)]),
        ("bash -x run.sh a", [("./run.sh", "a")]),
        ("bash +x run.sh a", [("./run.sh", "a")]),
        ("bash --norc run.sh a", [("./run.sh", "a")]),
        ("bash -o pipefail run.sh a", [("./run.sh", "a")]),
        ("bash -O extglob -x run.sh a", [("./run.sh", "a")]),
        ("bash --rcfile y run.sh a b", [("./run.sh", "a", "b")]),
        ("source run.sh a", [("./run.sh", "a")]),
        (". run.sh", [("./run.sh",)]),
        ("bash -", []),
        ("bash -x - run.sh", []),
        ("bash -o", []),
        ("bash -c ls run.sh", [("ls",)]),
        ("git -c alias.p=push p", [("git", "p"), ("git", "push")]),
        ("git -c ALIAS.p='push -f' p", [("git", "p"), ("git", "push", "-f")]),
        ("git -c alias.x=!ls x", [("git", "x"), ("ls",)]),
        ("git -c alias.x=log! x", [("git", "x"), ("git", "log!")]),
        ("git -c user.name=push log", [("git", "log")]),
    ],
)
def test_the_script_of_a_shell_and_the_aliases_of_git_are_commands(command: str, inner: list[tuple[str, ...]]) -> None:
    assert list(list_inner_commands(words(command))) == inner


@pytest.mark.parametrize("command", ["git", "git push", "git -C", "git -C x", "git -p", "find -exec", "find . -exec"])
def test_nothing_is_found_where_nothing_is_inside(command: str) -> None:
    found = unwrap(words(command))
    assert (found.commands, found.texts, found.writes, found.complete) == ((), (), (), True)


def test_a_setting_of_git_is_no_command() -> None:
    assert unwrap(words("git -c a=b -c x.y=!ls log")).texts == ("ls",)


def test_files_that_commands_in_strings_write_to_are_told() -> None:
    found = unwrap(words("sudo sh -c 'cat < in > a 2>> b; echo c >&2'"))
    assert found.writes == ("a", "b")
    assert found.texts == ("cat < in > a 2>> b; echo c >&2",)
    assert find_builtin_deny(("sh",), unwrap(words("sh -c 'echo x > /dev/sda'")).writes) is not None


def test_a_string_that_nobody_can_read_is_told_as_it_is() -> None:
    found = unwrap(words("bash -c 'rm -rf $X'"))
    assert (found.commands, found.texts, found.complete) == ((), ("rm -rf $X",), True)


@pytest.mark.parametrize(
    "deep",
    [
        ("env",) * 5000,
        ("eval",) * 300,
        ("watch",) * 300,
        ("find", *(("-exec", "find") * 1000)),
        ("eval", *("a",) * 9000),
    ],
    ids=["env", "eval", "watch", "find", "long"],
)
def test_what_is_too_deep_says_so(deep: tuple[str, ...]) -> None:
    found = unwrap((*deep, "rm", "x"))
    assert not found.complete
    assert len(found.commands) <= MAX_INNER_COMMANDS + 1


def test_as_much_as_fits_is_complete() -> None:
    found = unwrap((*("env",) * 100, "rm", "x"))
    assert (found.complete, len(found.commands)) == (True, 100)
    assert ("rm", "x") in found.commands
    assert not unwrap((*("env",) * 101, "rm", "x")).complete


def test_what_was_too_large_once_stays_so_whatever_comes_behind_it() -> None:
    found = unwrap(("find", "-exec", "sh", "-c", "ls " * 5000, ";", "-exec", "sh", "-c", "rm x", ";"))
    assert not found.complete
    assert ("rm", "x") in found.commands


_LAYERS = [
    ("sudo", "-u", "a"), ("env", "A=b"), ("timeout", "5"), ("nice", "-n", "1"), ("xargs", "-0"), ("nohup",),
    ("find", ".", "-exec"), ("command",), ("busybox",), ("stdbuf", "-oL"), ("flock", "f"), ("uv", "run"), ("sh", "-c"),
    ("eval",), ("bash", "-o", "pipefail", "-lc"),
]  # fmt: skip


@given(st.lists(st.sampled_from(_LAYERS), max_size=8))
def test_no_wrapping_hides_a_command(layers: list[tuple[str, ...]]) -> None:
    command: tuple[str, ...] = ("rm", "x")
    for layer in layers:
        takes_a_string = layer[0] in {"sh", "bash", "eval"}
        command = (*layer, shlex.join(command)) if takes_a_string else (*layer, *command)
    found = unwrap(command)
    assert not found.complete or ("rm", "x") in (command, *found.commands)


_ODD = [
    "",
    "-",
    "--",
    "-c",
    "-t",
    "-exec",
    ";",
    "+",
    ":::",
    "A=",
    "=",
    "~",
    "$HOME",
    "/",
    ".",
    "*",
    "\\",
    "of=",
    "-i",
    "(",
    "'",
]
_PROGRAMS = [
    "rm",
    "mv",
    "cp",
    "sed",
    "dd",
    "find",
    "fd",
    "git",
    "bash",
    "su",
    "env",
    "parallel",
    "watch",
    "trap",
    "init",
]


@given(st.lists(st.sampled_from(_ODD + _PROGRAMS) | st.text(max_size=6), max_size=8).map(tuple))
def test_any_words_can_be_looked_into(odd: tuple[str, ...]) -> None:
    for command in (odd, *unwrap(odd).commands):
        assert command == odd or command
        found = find_builtin_deny(command, odd)
        assert found is None or found.rule.startswith("deny.")
