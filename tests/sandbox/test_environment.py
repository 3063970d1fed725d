"""The environment of a command: put together from a list, without any secret, and with nothing that steers programs."""

import os
import pwd
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.sandbox.environment import (
    FOLDER_VARIABLES,
    PATH_VARIABLES,
    build_approved_host,
    build_environment,
    build_git_variables,
    find_withheld_variables,
    list_approved_variables,
)
from handrail.sandbox.profile import CommandOrigin, SandboxHost, SandboxProfile

TRUSTS: tuple[CommandOrigin, ...] = ("proven", "unasked", "approved")
SECRETS = (
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "sk-proj-q1w2e3r4t5y6u7i8o9p0",
    "AKIAIOSFODNN7EXAMPLE",
    "postgres://app:hunter2@db/shop",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "3f786850e387550fdab836ed7e6dc881de23001b",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzz3KEY",
)
MADE = {"TERM", "TMPDIR", "PAGER", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "PATH", "HOME", "SHELL", "USER", "LOGNAME", "TZ"}
MADE |= {"LSAN_OPTIONS"}  # for programs that would trace themselves
LANGUAGES = {"LANG", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME"}
STEERING = (
    "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "CDPATH", "GLOBIGNORE", "IFS", "PS4", "LD_PRELOAD", "LD_LIBRARY_PATH",
    "PYTHONPATH", "PYTHONSTARTUP", "NODE_OPTIONS", "PERL5OPT", "GIT_DIR", "GIT_EXTERNAL_DIFF", "GIT_CONFIG_PARAMETERS",
    "PROMPT_COMMAND", "BASH_FUNC_ls%%", "LESSOPEN", "EDITOR", "GIT_SSH_COMMAND", "HANDRAIL_MODE", "SSH_AUTH_SOCK",
)  # fmt: skip
LISTED = ("NODE_ENV", "RACK_ENV", "CFLAGS")


def all_shown(path: str) -> bool:
    return True


def made(
    environ: Mapping[str, str],
    trust: CommandOrigin = "approved",
    *,
    root: str = "/srv/shop",
    variables: tuple[str, ...] = (),
    shown: Callable[[str], bool] = all_shown,
) -> dict[str, str]:
    confinement = SandboxProfile(origin=trust, cwd=root, read_only=(root,))
    return build_environment(
        confinement, SandboxHost(home="/home/ada", environ=environ, state="/s", variables=variables), shown
    )


# Only what can be in an environment: no NUL.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
places = st.sampled_from(["/usr", "/usr/bin", "/opt", "/nowhere", "usr/bin", "", ".", "/usr/../bin", "/tmp", "/etc"])
values = st.one_of(
    texts, places, st.lists(places, max_size=5).map(":".join), st.sampled_from(SECRETS),
    st.sampled_from(SECRETS).map(lambda one: f"/opt/{one}"), st.sampled_from(SECRETS).map(lambda one: f"/usr:{one}"),
    st.sampled_from(["C", "de_DE.UTF-8", "de_DE.ISO-8859-1", "Europe/Berlin", "UTC", "() { :; }", "a\nb"]),
)  # fmt: skip
names = st.one_of(
    st.sampled_from([*MADE, *LANGUAGES, *STEERING, *LISTED, "PYENV_ROOT", "GOPATH", "JAVA_HOME", "AWS_SECRET_KEY"]),
    st.text(st.characters(exclude_characters="\0=", exclude_categories=["Cs"]), min_size=1, max_size=12),
)
environs = st.dictionaries(names, values, max_size=25)


@given(environs, st.sampled_from(TRUSTS), st.lists(st.sampled_from([*LISTED, *STEERING, "GH_TOKEN"])).map(tuple))
def test_whatever_the_runtime_was_started_with_a_command_gets_what_is_listed_and_no_secret(
    environ: dict[str, str], trust: CommandOrigin, variables: tuple[str, ...]
) -> None:
    found = made(environ, trust, variables=variables)
    allowed = MADE | LANGUAGES | FOLDER_VARIABLES | PATH_VARIABLES | set(LISTED) | set(build_git_variables())
    assert set(found) <= allowed
    assert MADE - {"USER", "LOGNAME", "TZ", "LSAN_OPTIONS"} <= set(found)
    together = "\n".join(found.values())
    assert not [secret for secret in SECRETS if secret in together]
    assert all(value.isprintable() and not value.startswith("()") for value in found.values())
    assert all(entry.startswith("/") and os.path.isdir(entry) for entry in found["PATH"].split(":"))


def test_a_variable_that_is_on_no_list_is_not_passed_on() -> None:
    environ = {
        **dict.fromkeys(STEERING, "canary"),
        "FOO": "canary",
        "DATABASE_URL": "canary",
        "XDG_RUNTIME_DIR": "/run",
    }
    for trust in TRUSTS:
        assert "canary" not in str(made(environ, trust))


def test_a_listed_variable_is_passed_on_and_another_one_is_not() -> None:
    found = made({"NODE_ENV": "test", "RACK_ENV": "test"}, variables=("NODE_ENV", "CFLAGS"))
    assert found["NODE_ENV"] == "test"
    assert not {"RACK_ENV", "CFLAGS"} & found.keys()


@pytest.mark.parametrize("secret", [*SECRETS, "() { :; }; echo", "a\nb", "a\x1b[0m", "x" * 9000])
def test_a_listed_variable_is_kept_back_where_its_value_is_a_secret_or_no_text(secret: str) -> None:
    assert "NODE_ENV" not in made({"NODE_ENV": secret}, variables=("NODE_ENV",))
    host = SandboxHost(
        home="/", environ={"NODE_ENV": secret, "CFLAGS": "-O2"}, state="/s", variables=("NODE_ENV", "CFLAGS")
    )
    (reason,) = find_withheld_variables(host).values()
    assert secret not in reason


@pytest.mark.parametrize("name", ["BASH_ENV", "LD_PRELOAD", "GH_TOKEN", "PATH", "GIT_DIR"])
def test_a_listed_name_that_no_command_gets_is_kept_back_whoever_listed_it(name: str) -> None:
    found = made({name: "/usr/bin", "PATH": "/usr/bin"}, variables=(name,))
    assert found.get(name) in (None, found["PATH"])
    assert name in find_withheld_variables(SandboxHost(home="/", environ={name: "x"}, state="/s", variables=(name,)))


def test_nothing_is_kept_back_that_is_not_there() -> None:
    assert find_withheld_variables(SandboxHost(home="/", environ={}, state="/s", variables=("GH_TOKEN",))) == {}


class Paths:
    """Folders of one test."""

    def __init__(self, tmp: Path) -> None:
        self.root = tmp / "shop"
        self.tools = tmp / "tools"
        for folder in (self.root / "bin", self.tools / "bin"):
            folder.mkdir(parents=True)
        (tmp / "out").symlink_to(self.root / "way")
        (self.root / "way").symlink_to(self.tools)
        (tmp / "in").symlink_to(self.root)
        self.open = tmp / "open"
        self.open.mkdir()
        self.open.chmod(0o777)

    def path(
        self, *entries: object, trust: CommandOrigin = "approved", shown: Callable[[str], bool] = all_shown
    ) -> list[str]:
        environ = {"PATH": ":".join(map(str, entries))}
        return made(environ, trust, root=str(self.root), shown=shown)["PATH"].split(":")


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path.resolve())


def test_the_search_path_has_the_persons_folders_in_their_order_and_then_the_systems(paths: Paths) -> None:
    found = paths.path("/usr/sbin", paths.tools / "bin", "/usr/sbin/", paths.root / "bin")
    assert found[:3] == ["/usr/sbin", str(paths.tools / "bin"), str(paths.root / "bin")]
    assert found.count("/usr/sbin") == 1
    assert "/usr/bin" in found[3:]


@pytest.mark.parametrize(
    "entry", ["", ".", "bin", "../bin", "/nowhere", "/usr/../usr/bin", "/etc/passwd", "/", "/a\nb"]
)
def test_the_search_path_has_no_entry_that_depends_on_where_one_is(paths: Paths, entry: str) -> None:
    assert paths.path(entry, paths.tools / "bin")[0] == str(paths.tools / "bin")


def test_the_search_path_has_only_what_the_command_sees(paths: Paths) -> None:
    hidden = str(paths.tools / "bin")
    assert hidden not in paths.path(hidden, shown=lambda path: path != hidden)


def test_the_search_path_has_no_folder_that_everybody_may_write_to(paths: Paths) -> None:
    assert str(paths.open) not in paths.path(paths.open)


def test_what_is_proven_takes_no_program_from_a_place_that_an_agent_could_have_filled(paths: Paths) -> None:
    tmp = paths.root.parent
    entries = [paths.root / "bin", paths.root, tmp / "in/bin", tmp / "out/bin", paths.root / "way/bin"]
    for entry in entries:
        assert str(entry) in paths.path(entry, trust="unasked")
        assert str(entry) not in paths.path(entry, trust="proven")
    assert paths.path(paths.tools / "bin", trust="proven")[0] == str(paths.tools / "bin")


def test_a_search_path_without_any_folder_is_the_systems(paths: Paths) -> None:
    assert paths.path("", shown=lambda path: False) == ["/usr/bin", "/bin"]


def test_a_toolchain_is_named_where_it_is_shown(paths: Paths) -> None:
    environ = {"PYENV_ROOT": str(paths.tools), "JAVA_HOME": "/nowhere", "CARGO_HOME": "relative", "NVM_DIR": "/usr"}
    environ["GOPATH"] = f"/nowhere:{paths.tools}::{paths.root}:x"
    environ["VIRTUAL_ENV"] = str(paths.root)
    chosen = {
        name: value
        for name, value in made(environ, root=str(paths.root)).items()
        if name in FOLDER_VARIABLES | PATH_VARIABLES
    }
    assert chosen == {
        "PYENV_ROOT": str(paths.tools),
        "NVM_DIR": "/usr",
        "GOPATH": f"{paths.tools}:{paths.root}",
        "VIRTUAL_ENV": str(paths.root),
    }
    assert "NVM_DIR" not in made(environ, shown=lambda path: path != "/usr")
    proven = made(environ, "proven", root=str(paths.root))
    assert (proven["GOPATH"], "VIRTUAL_ENV" in proven) == (str(paths.tools), False)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, {"LANG": "C.UTF-8"}),
        ({"LANG": "de_DE.UTF-8"}, {"LANG": "de_DE.UTF-8"}),
        ({"LANG": "C"}, {"LANG": "C"}),
        ({"LC_ALL": "POSIX", "LANG": "x"}, {"LC_ALL": "POSIX"}),
        ({"LANG": "de_DE.ISO-8859-1", "LC_CTYPE": "C.utf8"}, {"LANG": "C.UTF-8", "LC_CTYPE": "C.utf8"}),
        ({"LANG": "../../evil.UTF-8"}, {"LANG": "C.UTF-8"}),
    ],
)
def test_the_language_is_the_persons_where_it_is_utf_8(environ: dict[str, str], expected: dict[str, str]) -> None:
    found = made(environ)
    assert {name: value for name, value in found.items() if name in LANGUAGES} == expected


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "EST5EDT"])
def test_the_time_zone_is_the_persons(zone: str) -> None:
    assert made({"TZ": zone})["TZ"] == zone


@pytest.mark.parametrize("zone", [":/etc/passwd", "/etc/passwd", "../x", "a b", "x" * 30, "3f786850e387550f", ""])
def test_a_time_zone_that_is_none_is_left_out(zone: str) -> None:
    assert "TZ" not in made({"TZ": zone})


def test_the_account_is_told_to_what_may_need_it_and_not_to_what_only_looks() -> None:
    name = pwd.getpwuid(os.geteuid()).pw_name
    for trust in ("unasked", "approved"):
        found = made({"USER": "canary", "LOGNAME": "canary"}, trust)
        assert (found["USER"], found["LOGNAME"]) == (name, name)
    assert not {"USER", "LOGNAME"} & made({"USER": name}, "proven").keys()


def test_bash_starts_nothing_and_knows_nothing_of_the_parents_environment(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    start = tmp_path / "start.sh"
    start.write_text(f"echo ran >>{ran}\n")
    environ = {
        "PATH": os.environ["PATH"],
        **{name: str(start) for name in STEERING if not name.startswith("LD_")},
        "BASH_FUNC_ls%%": f"() {{ echo ran >>{ran}; }}",
        "PS4": f"$(echo ran >>{ran})",
        "SHELLOPTS": "xtrace",
        "CANARY_KEY": "canary",
    }
    plain = ["bash", "--noprofile", "--norc", "-c"]
    subprocess.run([*plain, "ls"], env=environ, check=True, capture_output=True)
    assert ran.exists(), "the traps work"
    ran.unlink()
    found = subprocess.run(
        [*plain, "ls >/dev/null; env"], env=made(environ, "approved"), check=True, capture_output=True, text=True
    )
    assert not ran.exists()
    assert "canary" not in found.stdout + found.stderr
    assert {line.partition("=")[0] for line in found.stdout.splitlines()} <= MADE | LANGUAGES | {"PWD", "SHLVL", "_"}


def git(repository: Path, *words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    base = {"PATH": os.environ["PATH"], "HOME": str(repository.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    environment = base if environment is None else environment
    return subprocess.run(["git", *words], cwd=repository, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A repository whose own settings start a program that leaves a mark."""
    repository = tmp_path / "shop"
    repository.mkdir()
    trap = tmp_path / "trap"
    trap.write_text(f'#!/bin/sh\necho "$0" >>{tmp_path}/ran\n')
    trap.chmod(0o755)
    git(repository, "init", "-q")
    (repository / "a").write_text("a\n")
    git(repository, "add", "a")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    assert git(repository, *who, "commit", "-qm", "a").returncode == 0
    signed = git(repository, "cat-file", "commit", "HEAD").stdout.replace(
        "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n", 1
    )
    (tmp_path / "commit").write_text(signed)
    made = git(repository, "hash-object", "-w", "-t", "commit", f"{tmp_path}/commit").stdout.strip()
    git(repository, "update-ref", "HEAD", made)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "post-index-change").symlink_to(trap)
    for key, value in {
        "core.fsmonitor": trap, "core.hooksPath": hooks, "core.pager": trap, "log.showSignature": "true",
        "gpg.program": trap, "core.repositoryFormatVersion": "1", "extensions.partialClone": "o",
        "remote.o.url": repository, "remote.o.promisor": "true", "remote.o.uploadpack": trap,
    }.items():  # fmt: skip
        assert git(repository, "config", key, str(value)).returncode == 0
    (tmp_path / "ran").unlink(missing_ok=True)
    (repository / "a").write_text("b\n")
    os.utime(repository / "a", (1, 1))
    return repository


LOOKING = [
    ("status",), ("diff",), ("log", "-1"), ("log", "--format=%G?"), ("show", "HEAD"), ("show", "0" * 39 + "1"),
    ("blame", "a"),
]  # fmt: skip


def test_git_starts_no_program_that_a_repository_names_while_it_only_looks(hostile: Path) -> None:
    ran = hostile.parent / "ran"
    index = hostile / ".git" / "index"
    for words in LOOKING:
        git(hostile, *words)
    assert len(ran.read_text().splitlines()) >= 5, "the traps work"
    ran.unlink()
    os.utime(hostile / "a", (2, 2))
    before = index.read_bytes()
    environment = {**made(os.environ, "proven", root=str(hostile)), "HOME": str(hostile.parent)}
    outputs = {words: git(hostile, *words, environment=environment) for words in LOOKING}
    assert not ran.exists()
    assert index.read_bytes() == before
    assert "modified:   a" in outputs[("status",)].stdout
    assert "-a\n+b\n" in outputs[("diff",)].stdout
    assert outputs[("log", "-1")].returncode == outputs[("blame", "a")].returncode == 0


def test_git_keeps_its_hooks_for_commands_that_may_write(hostile: Path) -> None:
    environment = {**made(os.environ, "approved", root=str(hostile)), "HOME": str(hostile.parent)}
    git(hostile, "status", environment=environment)
    assert (hostile.parent / "ran").exists()


@given(environs, environs)
def test_what_was_approved_in_one_environment_is_what_a_command_gets_in_any_other(
    there: dict[str, str], here: dict[str, str]
) -> None:
    asked, answering = (SandboxHost(home="/usr", environ=one, state="/s", variables=LISTED) for one in (there, here))
    variables = list_approved_variables(asked, ())
    assert list_approved_variables(build_approved_host(answering, variables), ()) == variables


@given(environs)
def test_what_no_command_may_get_it_does_not_get_by_having_been_kept(environ: dict[str, str]) -> None:
    bare = SandboxHost(home="/usr", environ={}, state="/s")
    forged = {**environ, **dict.fromkeys(STEERING, "x"), "GOPATH": SECRETS[0]}
    given = list_approved_variables(build_approved_host(bare, forged), ())
    assert not given.keys() & {*STEERING, "GOPATH"}
