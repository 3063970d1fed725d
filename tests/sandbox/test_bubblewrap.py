"""Tier 2 for real: what a command in bubblewrap sees, and what it can change."""

import os
import socket
import stat
from pathlib import Path

import pytest
from namespaces import PROGRAM, World, ended

from handrail.protocol.errors import ToolError
from handrail.sandbox.bubblewrap import (
    EXIT_NOT_BEGUN,
    Bubblewrap,
    BubblewrapBackend,
    build_arguments,
    find_bubblewrap,
    inspect_bubblewrap,
    is_counted_by_namespace,
)
from handrail.sandbox.mounts import Mount
from handrail.sandbox.profile import ResourceLimits
from handrail.sandbox.view import SECRETS, build_base_view, list_secret_mounts
from handrail.workspace.search.ripgrep import find_ripgrep

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="bubblewrap is not installed")


TOP = {*("bin", "dev", "etc", "gnu", "home", "nix", "opt", "proc", "run", "sbin")} | {
    *("lib", "lib32", "lib64", "libx32", "sys", "tmp", "usr", "var")
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_command_reads_and_writes_its_workspace_and_its_exit_code_is_told(world: World) -> None:
    world.write("home/projects/mine/a", "old")
    done = world.run("cat a; echo new >b; exit 7")
    assert (done.out, done.code) == ("old", 7)
    assert (world.workspace / "b").read_text() == "new\n"
    assert '"child-pid"' in done.status
    assert '"exit-code": 7' in done.status


def test_a_proven_command_changes_nothing_in_the_workspace(world: World) -> None:
    file = world.write("home/projects/mine/a", "old")
    before = file.stat()
    done = world.run("echo x >a; echo x >b; rm a; chmod 777 a; touch a; mv a c; true", world.proven())
    assert done.out.count("Read-only file system") + done.out.count("not permitted") == 6
    assert (file.read_text(), file.stat().st_mtime_ns, file.stat().st_mode) == (
        "old",
        before.st_mtime_ns,
        before.st_mode,
    )
    assert os.listdir(world.workspace) == ["a"]


def test_the_rest_of_the_disk_is_not_there(world: World) -> None:
    world.write("home/.ssh/id_rsa", "SECRET")
    world.write("home/projects/other/code", "SECRET")
    world.write("elsewhere/x", "SECRET")
    done = world.run(
        f"ls -A / ~ ~/projects {world.folder}; cat ~/.ssh/id_rsa ~/projects/other/code {world.folder}/elsewhere/x"
    )
    assert "SECRET" not in done.out
    assert done.out.count("No such file") == 3
    top = set(done.out.split(":\n")[1].split("\n\n")[0].split())
    assert top <= TOP | {path.split("/")[1] for path in (str(world.folder), find_ripgrep(()) or "/usr")}


def test_nothing_outside_the_workspace_can_be_written(world: World) -> None:
    done = world.run(
        "for p in /x /etc/x /usr/x /usr/bin/x /opt/x /dev/x /proc/x /var/x /var/lib/x /sys/x; do echo >$p; done 2>&1"
    )
    assert len(done.out.splitlines()) == 10
    text = "echo x >/tmp/a; echo x >/var/tmp/b; echo x >/dev/shm/c; echo x >~/d; ls -U /tmp/a /tmp/b ~/d"
    assert world.run(text).out == f"/tmp/a\n/tmp/b\n{world.home}/d\n"
    assert not (world.home / "d").exists()


def test_the_private_folders_have_a_limit_that_follows_from_the_memory_limit(world: World) -> None:
    if "--size" not in inspect_bubblewrap(PROGRAM or "").options:
        pytest.skip("this bubblewrap cannot limit them")
    small = world.confinement(limits=ResourceLimits(memory=4 << 20))
    text = "for p in /tmp ~ /dev/shm; do head -c 2M /dev/zero >$p/x; stat -c %s $p/x; done 2>&1"
    sizes = [line for line in world.run(text, small).out.splitlines() if line.isdigit()]
    assert sizes == ["1048576"] * 3


def test_a_command_has_no_privileges_and_no_way_to_new_ones(world: World) -> None:
    status = dict(line.split(":\t") for line in world.run("cat /proc/self/status").out.splitlines() if ":\t" in line)
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert "tmpfs" not in world.run("unshare -Urm mount -t tmpfs x /tmp 2>&1 && mount").out


def test_a_command_sees_only_its_own_processes_and_not_the_machines_name(world: World) -> None:
    done = world.run("cat /proc/[0-9]*/comm; hostname; uname -n")
    assert sorted(done.out.split()) == ["bash", "bwrap", "localhost", "localhost"]


def test_no_descriptor_is_left_open_but_the_three(world: World) -> None:
    assert world.run("cd /proc/self/fd; echo *").out == "0 1 2 3\n"  # 3: the listing's own


def test_what_bubblewrap_is_told_and_its_environment_cannot_be_read_from_inside(world: World) -> None:
    world.environ["MY_TOKEN"] = "SECRET"
    hidden = str(world.write("home/projects/mine/keys/one.pem"))
    done = world.run(
        "cat /proc/*/cmdline /proc/*/environ | tr '\\0' '\\n'; env", world.confinement(hidden_files=(hidden,))
    )
    assert "one.pem" not in done.out
    assert "SECRET" not in done.out
    assert "BASH_ENV" not in world.run("env; bash -c env").out


def test_hidden_files_and_folders_are_empty_and_stay_so(world: World) -> None:
    file = world.write("home/projects/mine/.env", "SECRET")
    inner = world.write("home/projects/mine/.aws/credentials", "SECRET")
    hidden = {"hidden_files": (str(file),), "hidden_folders": (str(inner.parent),)}
    text = """cat .env; ls -A .aws; cat .aws/credentials; stat -c %F%s .env
        echo x >.env; echo x >.aws/x; rm -rf .env .aws; mv .env e; mv .aws a; ln .env l; cp .env c; cat c l e"""
    for confinement in (world.confinement(**hidden), world.proven(**hidden)):
        done = world.run(text, confinement)
        assert "SECRET" not in done.out
        assert "regular empty file0" in done.out
        assert (file.read_text(), inner.read_text()) == ("SECRET", "SECRET")


def test_a_folder_with_something_hidden_takes_its_cover_along_when_it_is_renamed(world: World) -> None:
    file = world.write("home/projects/mine/a/b/.env", "SECRET")
    done = world.run("mv a z && cat z/b/.env && ls -A z/b", world.confinement(hidden_files=(str(file),)))
    assert (done.out, done.code) == (".env\n", 0)


def test_what_is_sealed_can_be_read_and_not_changed_moved_or_replaced(world: World) -> None:
    hook = world.write("home/projects/mine/.git/hooks/pre-commit", "mine")
    config = world.write("home/projects/mine/.git/config", "mine")
    world.write("home/projects/mine/.git/HEAD", "mine")
    sealed = world.confinement(read_only_paths=(str(hook.parent), str(config)))
    done = world.run(
        """cat .git/config; echo x >.git/config; echo x >.git/hooks/new; rm -rf .git/hooks; mv .git/config .git/c
        mv .git g && mkdir -p .git/hooks && echo evil >.git/hooks/pre-commit; echo ok >.git/HEAD""",
        sealed,
    )
    assert done.out.startswith("mine")
    assert (config.read_text(), hook.read_text(), os.listdir(hook.parent)) == ("mine", "mine", ["pre-commit"])
    assert (world.workspace / ".git/HEAD").read_text() == "ok\n"


def test_what_is_gone_by_now_is_neither_made_nor_in_the_way(world: World) -> None:
    gone = {"hidden_files": (f"{world.workspace}/.env",), "hidden_folders": (f"{world.workspace}/.aws",)}
    done = world.run("ls -A", world.confinement(read_only_paths=(f"{world.workspace}/handrail.toml",), **gone))
    assert (done.out, done.code, os.listdir(world.workspace)) == ("", 0, [])


def test_what_has_become_something_else_by_now_is_still_hidden(world: World) -> None:
    world.write("home/projects/mine/.env/inner", "SECRET")  # was a file
    world.write("home/projects/mine/.aws", "SECRET")  # was a folder
    real = world.write("home/projects/mine/real", "SECRET")
    (world.workspace / ".netrc").symlink_to(real)
    (world.workspace / ".pgpass").symlink_to("/nowhere")
    files = tuple(f"{world.workspace}/{name}" for name in (".env", ".netrc", ".pgpass"))
    done = world.run(
        "cat .env/* .aws .netrc real",
        world.confinement(hidden_files=files, hidden_folders=(f"{world.workspace}/.aws",)),
    )
    assert '"exit-code"' in done.status
    assert "SECRET" not in done.out


def test_a_socket_in_the_workspace_can_be_hidden(world: World) -> None:
    path = str(world.workspace / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        assert world.run("stat -c %F s", world.confinement(hidden_files=(path,))).out == "regular empty file\n"


@pytest.mark.parametrize(
    "name", ["with space", "new\nline", "tab\t\\040", "ünï", "--bind", "a:b,c", "'\"$(x)", "\udcff"]
)
def test_a_workspace_may_have_any_name(world: World, name: str) -> None:
    root = world.home / "projects" / name
    root.mkdir()
    (root / ".env").write_text("SECRET")
    confinement = world.confinement(cwd=str(root), writable=(str(root),), hidden_files=(f"{root}/.env",))
    done = world.run("cat .env; echo here >a; cat a", confinement)
    assert (done.out, done.code) == ("here\n", 0)
    assert (root / "a").read_text() == "here\n"


def test_of_roots_in_roots_the_innermost_counts(world: World) -> None:
    for name in ("a/x", "a/b/x", "a/b/c/x"):
        world.write(f"home/projects/mine/{name}", "old")
    root = str(world.workspace)
    nested = world.confinement(read_only=(f"{root}/a/b",), writable=(root, f"{root}/a/b/c"))
    world.run("echo new >a/x; echo new >a/b/x; echo new >a/b/c/x", nested)
    assert [(world.workspace / name).read_text() for name in ("a/x", "a/b/x", "a/b/c/x")] == ["new\n", "old", "new\n"]


def test_the_home_itself_can_be_the_workspace(world: World) -> None:
    world.write("home/a", "mine")
    world.write("home/.cargo/bin/tool")
    home = str(world.home)
    done = world.run("cat ~/a; echo x >~/b; echo x >.cargo/bin/new", world.confinement(cwd=home, writable=(home,)))
    assert (done.out, done.code) == ("mine", 0)
    assert (world.home / "b").exists()
    assert (world.home / ".cargo/bin/new").exists()


def test_the_state_folder_is_hidden_in_a_workspace_but_for_a_root_in_it(world: World) -> None:
    state = world.workspace / "state"
    world.write("home/projects/mine/state/audit.jsonl", "SECRET")
    world.write("home/projects/mine/state/sessions/one/files/out", "mine")
    files = str(state / "sessions/one/files")
    plain = world.run("ls -A state; cat state/audit.jsonl; echo x >state/x", state=str(state))
    assert "SECRET" not in plain.out
    assert plain.out.count("No such file") + plain.out.count("Read-only") == 2
    with_root = world.run(
        "find state; cat state/audit.jsonl; echo x >state/x", world.confinement(read_only=(files,)), state=str(state)
    )
    assert "SECRET" not in with_root.out
    assert with_root.out.split()[:5] == [
        "state",
        "state/sessions",
        "state/sessions/one",
        "state/sessions/one/files",
        "state/sessions/one/files/out",
    ]
    assert not (state / "x").exists()


def test_a_home_behind_a_link_is_found_by_both_names(world: World) -> None:
    link = world.folder / "to-home"
    link.symlink_to(world.home)
    world.write("home/.nvm/node", "tool")
    done = world.run(f"cat ~/.nvm/node {world.home}/.nvm/node; pwd", home=str(link))
    assert done.out == f"tooltool{world.workspace}\n"


def test_toolchains_are_shown_read_only_in_the_private_home(world: World) -> None:
    tool = world.write("home/.pyenv/bin/tool", "#!/bin/sh\necho from the tool\n")
    tool.chmod(0o755)
    world.environ["PATH"] = f"{world.home}/.pyenv/bin:/usr/bin:/bin"
    done = world.run("tool; echo x >~/.pyenv/bin/tool; echo x >~/.pyenv/new; touch ~/mine && ls -A ~")
    assert done.out.startswith("from the tool\n")
    assert done.out.count("Read-only file system") == 2
    assert done.out.endswith(".pyenv\nmine\nprojects\n")


def test_the_systems_credentials_that_this_user_can_open_are_empty(world: World) -> None:
    covers = list(list_secret_mounts())
    readable = [place for kind, place in ((mount.kind, mount.place) for mount in covers) if kind == "no-file"]
    assert all(os.access(place, os.R_OK) for place in readable)
    if os.geteuid() == 0:
        assert "/etc/shadow" in readable
    done = world.run(
        "cat "
        + " ".join(["/etc/shadow", "/etc/gshadow", *readable])
        + " 2>/dev/null; ls -A /etc/ssl/private 2>/dev/null"
    )
    assert done.out == ""
    assert all(glob.startswith("/etc/") for glob in SECRETS)


def test_there_is_no_network_and_no_loopback_to_the_outside(world: World) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        port = listener.getsockname()[1]
        done = world.run(f"echo >/dev/tcp/127.0.0.1/{port}; cat /proc/net/dev | wc -l")
        assert "refused" in done.out
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_command_that_nobody_waits_for_is_not_begun(world: World) -> None:
    launch = BubblewrapBackend(inspect_bubblewrap(PROGRAM or ""), world.host()).launch(
        world.confinement(), "touch begun"
    )
    launch.drop_lifeline()  # as if the runtime had died between the start and the guard
    assert ended(launch).code == EXIT_NOT_BEGUN
    assert os.listdir(world.workspace) == []


def test_limits_of_a_process_hold_from_the_start(world: World) -> None:
    limits = ResourceLimits(file_size=1 << 20, processes=64)
    done = world.run("ulimit -c; ulimit -f; ulimit -u; head -c 2M /dev/zero >big", world.confinement(limits=limits))
    assert done.out.split()[:2] == ["0", "1024"]
    assert (world.workspace / "big").stat().st_size == 1 << 20
    if is_counted_by_namespace():
        assert done.out.split()[2] == "256"


def test_what_bash_says_of_a_text_is_about_the_text_alone(world: World) -> None:
    done = world.run("echo (")
    assert done.code == 2
    assert done.out.endswith("line 1: `echo ('\n")
    assert len(done.out.splitlines()) == 2
    assert world.run('echo "$0 $# $- $LINENO"').out == "/bin/bash 0 hBc 1\n"


def test_a_sandbox_that_cannot_be_made_has_no_exit_code(world: World) -> None:
    gone = f"{world.workspace}/gone"
    done = world.run("true", world.confinement(cwd=gone))
    assert '"exit-code"' not in done.status
    assert done.out.startswith("bwrap: ")


def test_without_a_bash_nothing_is_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.sandbox.environment._SYSTEM_BASHES", ())
    world.write("home/projects/mine/bin/bash").chmod(0o755)  # what an agent wrote is none
    world.environ["PATH"] = f"{world.workspace}/bin"
    with pytest.raises(ToolError, match="There is no bash") as caught:
        world.run("true")
    assert caught.value.code == "UNAVAILABLE"


def test_more_hidden_files_than_can_be_covered_are_refused(world: World) -> None:
    files = [world.write(f"home/projects/mine/{number}.pem") for number in range(2_001)]
    with pytest.raises(ToolError) as caught:
        world.run("true", world.confinement(hidden_files=tuple(map(str, files))))
    assert caught.value.code == "LIMIT_EXCEEDED"


def test_a_bubblewrap_that_lies_in_the_workspace_is_not_used(world: World) -> None:
    copy = world.write("home/projects/mine/bwrap")
    copy.write_bytes(Path(PROGRAM or "").read_bytes())
    copy.chmod(0o755)
    with pytest.raises(ToolError) as caught:
        BubblewrapBackend(inspect_bubblewrap(str(copy)), world.host()).launch(world.confinement(), "true")
    assert caught.value.code == "SANDBOX_UNAVAILABLE"


def test_the_systems_bubblewrap_comes_before_one_on_path(world: World) -> None:
    other = world.write("other/bwrap")
    other.chmod(0o755)
    found = find_bubblewrap({"PATH": str(other.parent)})
    assert found == ("/usr/bin/bwrap" if os.path.exists("/usr/bin/bwrap") else str(other))


def test_an_old_bubblewrap_is_told_nothing_that_it_does_not_know(world: World) -> None:
    view = (Mount("home", "/h"), Mount("private", "/tmp"))
    old = list(
        build_arguments(Bubblewrap("/usr/bin/bwrap", "0.4.0", frozenset({"--bind"})), view, "/n", ResourceLimits())
    )
    new = list(
        build_arguments(
            Bubblewrap("/usr/bin/bwrap", "0.8.0", frozenset({"--size", "--disable-userns"})),
            view,
            "/n",
            ResourceLimits(),
        )
    )
    assert {"--size", "--disable-userns", "--perms"} & set(old) == set()
    assert [new[at + 2] for at, word in enumerate(new) if word == "--size"] == ["--tmpfs", "--tmpfs"]
    assert "--disable-userns" in new


def test_the_empty_things_lie_in_the_state_folder_and_are_made_when_they_are_gone(world: World) -> None:
    file = world.write("home/projects/mine/.env", "SECRET")
    preparing = BubblewrapBackend(inspect_bubblewrap(PROGRAM or ""), world.host())
    confinement = world.confinement(hidden_files=(str(file),))
    assert ended(preparing.launch(confinement, "cat .env")).out == ""
    nothing = world.folder / "state/nothing/file"
    assert stat.S_ISREG(nothing.stat().st_mode)
    nothing.unlink()
    nothing.write_text("something")
    assert (
        ended(BubblewrapBackend(inspect_bubblewrap(PROGRAM or ""), world.host()).launch(confinement, "cat .env")).out
        == ""
    )


def test_the_view_is_made_of_few_mounts(world: World) -> None:
    """Each costs a start about a tenth of a millisecond."""
    assert (
        len(
            [mount for mount in build_base_view(world.host()).mounts if mount.kind in {"shown", "no-file", "no-folder"}]
        )
        <= 20
    )
