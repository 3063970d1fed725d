"""Steps of a parsed command: the folders they run in, the paths they use, and displayed commands."""

import pytest
from tests.policy.deciding import decided

from handrail.policy.parse import (
    find_start_folder,
    list_displayed_uses,
    parse_command,
    to_fact_use,
)
from handrail.policy.programs.spec import PathUse
from handrail.policy.shell.syntax import Unparsed
from handrail.protocol.decisions import DisplayedCommand


def uses(command: str, cwd: str = ".") -> list[tuple[str, str]]:
    return [(use.path, use.access) for use in parse_command(command, cwd).path_uses()]


def steps(command: str, cwd: str = ".") -> tuple:
    found = parse_command(command, cwd)
    assert found.unparsed is None
    return found.steps


@pytest.mark.parametrize(
    ("command", "folders"),
    [
        ("cd a && ls", [".", "a"]),
        ("cd a; ls", [".", ". a"]),
        ("cd a || ls", [".", ". a"]),
        ("cd a | ls", [".", "."]),
        ("ls | cd a && ls", [".", ".", "."]),
        ("ls | cd a; ls", [".", ".", "."]),
        ("ls | wc && cd a && ls", [".", ".", ".", "a"]),
        ("ls && cd a && ls", [".", ".", "a"]),
        ("cd a && cd b && ls", [".", "a", "a/b"]),
        ("cd a && cd b; ls", [".", "a", ". a a/b"]),
        ("cd a && ls || cd b && ls", [".", "a", ". a", ". a b a/b"]),
        ("cd ./b && ls", [".", "b"]),
        ("cd .././.. && ls", [".", "../.."]),
        ("cd ..//.. && ls", [".", "../.."]),
        ("cd a && cd .. && ls", [".", "a", ". a/.."]),
        ("cd a && cd ./b/../c && ls", [".", "a", "a/c a/./b/../c"]),
        ("cd /x && ls", [".", "/x"]),
        ("cd a; cd a; ls", [".", ". a", ". a a/a"]),
        ("cd a; cd /x && ls", [".", ". a", "/x"]),
        ("cd a > out && ls", [".", "."]),
        ("cd a > /dev/null && ls", [".", "a"]),
        ("cd a 2>&1 && ls", [".", "a"]),
        ("cd a*b && ls", [".", "."]),
        ("cd a b && ls", [".", "."]),
        ("cd -P && ls", [".", "."]),
        ("cd '' && ls", [".", "."]),
        ("cd && ls", [".", "."]),
        ("ls a && ls", [".", "."]),
    ],
)
def test_a_command_runs_in_every_folder_that_the_shell_may_be_in(command: str, folders: list[str]) -> None:
    assert [" ".join(step.folders) for step in steps(command)] == folders


@pytest.mark.parametrize(
    ("command", "folders"),
    [
        ("cd a; ls", [".", "a"]),
        ("cd a && ls", [".", "a"]),
        ("cd a || ls", [".", "a"]),
        ("cd a; cd b; ls", [".", "a", "a a/b"]),
        ("cd a; cd c; ls", [".", "a", "a/c"]),
        ("cd a && cd c; ls", [".", "a", "a/c"]),
        ("cd x; ls", [".", ". x"]),
        ("cd x; cd a; ls", [".", ". x", ". x a x/a"]),
        ("ls && cd a; ls", [".", ".", ". a"]),
        ("ls || cd a; ls", [".", ".", ". a"]),
        ("cd a || cd c; ls", [".", "a", "a a/c"]),
        ("cd a && ls && cd c; ls", [".", "a", "a", "a a/c"]),
        ("cd x && cd a; ls", [".", "x", ". x x/a"]),
        ("cd a | ls; ls", [".", ".", "."]),
        ("ls | cd a; ls", [".", ".", "."]),
        ("cd a/..; ls", [".", ". a/.."]),
        ("cd x && cd /d; ls", [".", "x", ". x /d"]),
        ("cd x; cd /d; ls", [".", ". x", "/d"]),
        ("cd a || cd /d; ls", [".", "a", "a /d"]),
    ],
)
def test_a_cd_to_a_folder_that_is_there_succeeds_where_it_runs_for_certain(command: str, folders: list[str]) -> None:
    found = parse_command(command, ".", ("a", "a/c", "/d")).steps
    assert found
    assert [" ".join(step.folders) for step in found] == folders


@pytest.mark.parametrize(
    ("command", "places"),
    [
        ("cd a; cd b", ("a", "b", "a/b")),
        ("cat a && cd b && cd b", ("b", "b/b")),
        ("ls a", ()),
        ("cd $X", ()),
    ],
)
def test_the_folders_that_somebody_has_to_look_for(command: str, places: tuple[str, ...]) -> None:
    assert parse_command(command).cd_targets() == places


def test_a_script_that_starts_elsewhere_is_followed_from_there() -> None:
    assert [step.folders for step in steps("cd b && ls", "a")] == [("a",), ("a/b",)]
    assert uses("cat x /y > z", "a") == [("a/x", "read"), ("/y", "read"), ("a/z", "write")]


def test_a_folder_that_a_command_goes_to_is_read_and_told() -> None:
    step = steps("cd a && cd b")[1]
    assert (step.words, step.text, step.uses) == (("cd", "b"), "cd b", (PathUse("a/b", "read"),))
    assert (step.classification.rule, step.classification.reason) == ("exec.cd", "followed: the folder is now a/b")


def test_up_to_sixteen_folders_are_followed() -> None:
    assert len(steps(" && ".join(["cd a"] * 15 + ["ls"]))) == 16
    found = parse_command(" && ".join(["cd a"] * 16)).unparsed
    assert isinstance(found, Unparsed)
    assert (found.at, found.too_large) == (0, True)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("cd a; cat x", [("a", "read"), ("x", "read"), ("a/x", "read")]),
        ("cd a; cat < x", [("a", "read"), ("x", "read"), ("a/x", "read")]),
        ("cd a; ls b > x", [("a", "read"), ("b", "read"), ("a/b", "read"), ("x", "write"), ("a/x", "write")]),
        ("cat x 2>> y", [("x", "read"), ("y", "write")]),
        ("cat x &> y", [("x", "read"), ("y", "write")]),
        ("cat x 2>&1 > /dev/null 2> /dev/stderr", [("x", "read")]),
        ("cat < /dev/null > /dev/stdout", []),
        ("cat < /dev/stdin", []),
        ("rm src/*", [("src/.", "delete")]),
        ("touch src/*", [("src", "write")]),
        ("cat a/*.py", [("a", "read")]),
        ("cat *.py", [(".", "read")]),
        ("cd a && cat *.py", [("a", "read"), ("a/.", "read")]),
        ("rm a b a", [("a", "delete"), ("b", "delete")]),
        ("env rm a", [("rm", "read"), ("a", "read"), ("a", "delete")]),
        ("cd b && env rm a", [("b", "read"), ("b/rm", "read"), ("b/a", "read"), ("b/a", "delete")]),
        ("sh -c 'ls > a'", [("ls > a", "read"), ("a", "write")]),
        ("env cat a", [("cat", "read"), ("a", "read")]),
        ("ls 2>&1 $(", []),
    ],
)
def test_the_paths_that_a_command_names_from_where_it_may_run(command: str, named: list[tuple[str, str]]) -> None:
    assert uses(command) == named


@pytest.mark.parametrize(
    ("pattern", "folder"),
    [
        ("*", "."), ("a/*", "a"), ("a/b/*.py", "a/b"), ("a/*/b", "a"), ("a/?/b/c", "a"), ("a/[x]/b", "a"), ("/*", "/"),
        ("/*/x", "/"), ("/a/*", "/a"), ("*/a/b", "."), ("a", "."), ("./*", "."),
    ],
)  # fmt: skip
def test_a_glob_starts_from_the_names_before_its_first_wildcard(pattern: str, folder: str) -> None:
    assert to_fact_use(PathUse(pattern, "read", is_glob=True)).path == folder


@pytest.mark.parametrize("program", ["cd", "pushd", "popd", "chdir", "eval", "source", ".", "command", "builtin"])
def test_where_a_seen_command_may_move_the_shell_nobody_knows_the_folder(program: str) -> None:
    still, moving = DisplayedCommand(words=("ls", "cd")), DisplayedCommand(words=(program, "x"))
    assert find_start_folder((still, DisplayedCommand(words=())), "a") == "a"
    assert find_start_folder((still, moving, still), "a") is None


@pytest.mark.parametrize(
    ("words", "writes", "folder", "found"),
    [
        (("rm", "a"), (), ".", [("a", "delete")]),
        (("rm", "a"), (), "b", [("b/a", "delete")]),
        (("rm", "/a"), (), "b", [("/a", "delete")]),
        (("rm", "a", "/b"), (), None, [("/b", "delete")]),
        (("touch", "a"), (), ".", [("a", "write")]),
        (("cat", "a"), (), ".", []),
        (("frobnicate", "a"), (), ".", []),
        (("cp", "a/x", "."), (), ".", [(".", "write")]),
        (("echo", "x"), ("a",), ".", [("a", "write")]),
        ((), ("a", "/b"), "c", [("c/a", "write"), ("/b", "write")]),
        ((), ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/sda"), ".", [("/dev/sda", "write")]),
        (("rm", "~", "~/a", ""), ("~/b", ""), ".", []),
        (("rm", "a~"), (), ".", [("a~", "delete")]),
        ((), (), ".", []),
    ],
)
def test_what_a_seen_command_would_change_for_certain(
    words: tuple[str, ...], writes: tuple[str, ...], folder: str | None, found: list[tuple[str, str]]
) -> None:
    seen = DisplayedCommand(words=words, writes=writes)
    assert [(use.path, use.access) for use in list_displayed_uses(seen, folder)] == found


@pytest.mark.parametrize("sign", "$`*?[{")
def test_a_path_that_bash_may_expand_is_anything_in_the_folder_it_is_fixed_to(sign: str) -> None:
    seen = DisplayedCommand(words=("rm", f"../a{sign}b"), writes=(f"../{sign}", f"a{sign}"))
    assert [(use.path, use.access, use.is_glob) for use in list_displayed_uses(seen, ".")] == [
        ("../*", "delete", True),
        ("../*", "write", True),
    ]


@pytest.mark.parametrize(
    ("command", "needed"),
    [("ls", False), ("ls $X", True), ("bash -c 'ls'", False), ("bash -c 'ls $X'", True), ("cd a && sh -c '$X'", True)],
)
def test_the_display_parser_looks_only_where_ours_cannot(command: str, needed: bool) -> None:
    assert parse_command(command).needs_display is needed


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("env rm x", [("rm", "x")]),
        ("curl x | sh -c 'rm y'", [("rm", "y")]),
        ("cat env rm x", []),
        ("find . -exec rm x ';'", [("rm", "x")]),
        ("rm env rm x", []),
    ],
)
def test_only_what_may_start_others_is_looked_into(command: str, inner: list[tuple[str, ...]]) -> None:
    assert [one.words for step in steps(command) for one in step.inner] == inner


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("sed -i s/a/b/ x", [PathUse("x", "write")]),
        ("sed -i s/a/b/ src/*.py", [PathUse("src/*.py", "write", is_glob=True)]),
        ("sed -i s/a/b/ 'src/*.py'", [PathUse("src/*.py", "write")]),
        ("shred x", [PathUse("x", "delete")]),
        ("setfacl -m x a", [PathUse("x", "write"), PathUse("a", "write")]),
        ("find src/ -delete", [PathUse("src/*", "delete", is_glob=True)]),
        ("frobnicate x", []),
    ],
)
def test_what_a_command_seems_to_change_is_judged_though_no_table_tells_it(
    command: str, changed: list[PathUse]
) -> None:
    (step,) = steps(command)
    assert [use for use in step.uses if use.is_certainly_path and use.access != "read"] == changed
    assert step.classification.effect == "unproven"
    assert decided(command).rule == step.classification.rule


def test_what_is_fixed_of_a_path_tells_the_folder_that_it_is_in() -> None:
    found = list_displayed_uses(DisplayedCommand(words=("rm", "/a/$X/b", "c/d$Y")), ".")
    assert found == (PathUse("/a/*", "delete", is_glob=True), PathUse("c/*", "delete", is_glob=True))


@pytest.mark.parametrize(
    ("command", "needed"),
    [("echo x | sh", True), ("echo x | /bin/sh", True), ("echo x | pwsh", True), ("echo x | powershell", True),
     ("ls | env sh", True), ("ls | sh -c 'ls > a'", True), ("ls | frobnicate", False), ("ls | wc", False),
     ("ls; sh", False)],
)  # fmt: skip
def test_what_is_said_to_a_shell_is_looked_for(command: str, needed: bool) -> None:
    assert parse_command(command).needs_display is needed


def test_a_folder_without_a_name_is_not_followed() -> None:
    assert decided("cd ''").decision == "confirm"
    assert decided("cd a").decision == "allow"


def test_a_word_that_may_be_a_path_stays_one_that_may_be_in_another_folder() -> None:
    for command in ("frobnicate ../x", "cd a && frobnicate ../../x", "cd a; frobnicate /etc/x"):
        assert decided(command).rule == "exec.unknown"


def test_output_that_is_redirected_to_a_device_is_never_let_through() -> None:
    assert decided("ls > /dev/sda").rule == "deny.device"
    assert decided("cat < /dev/sda").rule == "fs.outside"


@pytest.mark.parametrize(
    ("command", "folders"),
    [
        ("cd a; ls", [".", "a"]),
        ("cd a; ls; cd ..; ls", [".", "a", "a", ". a/.."]),
        ("cd a && ls; cd b; ls", [".", "a", "a", "a/b"]),
        ("cd a || ls; ls", [".", "a", "a"]),
        ("ls && cd a; ls", [".", ".", ". a"]),
        ("ls || cd a; ls", [".", ".", ". a"]),
        ("cd x; ls", [".", ". x"]),
        ("cd a; cd x; ls", [".", "a", "a a/x"]),
        ("cd a | ls; ls", [".", ".", "."]),
        ("cd x && cd a; ls", [".", "x", ". x x/a"]),
    ],
)
def test_a_cd_to_a_folder_that_is_there_succeeds(command: str, folders: list[str]) -> None:
    found = parse_command(command, ".", ("a", "a/b", ".", "a/..")).steps
    assert found
    assert [" ".join(step.folders) for step in found] == folders
