"""Real programs under the filters, as bwrap installs them: people must find no reason to switch them off."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.sandbox.profile import CommandOrigin
from handrail.sandbox.seccomp_rules import build_filter

BWRAP = ("bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/")

JOBS = 'set -m; (exit 3) & wait %1; echo "job $?"'
HERE = "cat <<<short; head -c 2 <<<$(printf '%0200000d' 7); cat < <(echo substituted)"
SORTED = "seq 30000 | sort -S 64k -T /tmp -n | tail -1; mktemp >/dev/null && echo mktemp"
LOOKING = (
    "ls -la / >/dev/null && ps >/dev/null && df >/dev/null && find /etc -maxdepth 1 | head -1 && getent hosts localhost"
)
NODE = """
const {Worker} = require("worker_threads"), {execSync, spawn} = require("child_process"), fs = require("fs")
new Worker("0", {eval: true}).on("exit", code => console.log("worker", code))
console.log(execSync("echo ran").toString().trim())
spawn("cat").on("exit", code => console.log("spawned", code)).stdin.end("x")
fs.promises.readFile("/etc/passwd").then(text => console.log("read", text.length > 0))
"""
JAVA = """
import java.util.concurrent.*;
public class Main {
    public static void main(String[] given) throws Exception {
        try (var selector = java.nio.channels.Selector.open()) { selector.selectNow(); }
        var pool = Executors.newFixedThreadPool(4);
        System.out.println(pool.submit(() -> 42).get());
        pool.shutdown();
        System.out.println(new ProcessBuilder("true").start().waitFor());
    }
}
"""
THREADS_IN_C = r"""
#include <pthread.h>
#include <stdio.h>
static void *run(void *given) { return given; }
int main(void) { pthread_t one; pthread_create(&one, 0, run, 0); pthread_join(one, 0); puts("joined"); }
"""
COMMIT = "git -c user.name=A -c user.email=a@b.c commit -qm first"


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")


@pytest.fixture(autouse=True)
def _bwrap_works() -> None:
    if not shutil.which("bwrap") or subprocess.run([*BWRAP, "true"], capture_output=True, check=False).returncode:
        pytest.skip("bwrap does not work here")


def run(trust: CommandOrigin, folder: Path, *command: str) -> str:
    """What the command prints, both streams, in `folder`; it must succeed."""
    reading, writing = os.pipe()
    os.write(writing, build_filter(trust, 2))
    os.close(writing)
    bind = "--ro-bind" if trust == "proven" else "--bind"
    places = (
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        "/tmp",
        bind,
        str(folder),
        "/tmp/work",
        "--chdir",
        "/tmp/work",
    )
    whole = [*BWRAP, *places, "--seccomp", str(reading), "--", *command]
    try:
        done = subprocess.run(
            whole, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=(reading,), timeout=100, check=False
        )
    finally:
        os.close(reading)
    assert done.returncode == 0, done.stdout.decode()
    return done.stdout.decode()


BOTH = pytest.mark.parametrize("trust", ["proven", "unasked"])


@BOTH
def test_a_shell_has_jobs_and_texts_of_its_own(trust: CommandOrigin, tmp_path: Path) -> None:
    assert "job 3\n" in run(trust, tmp_path, "bash", "-c", JOBS)
    assert run(trust, tmp_path, "bash", "-c", HERE) == "short\n00substituted\n"


@BOTH
def test_programs_that_look_around_find_what_they_need(trust: CommandOrigin, tmp_path: Path) -> None:
    assert run(trust, tmp_path, "bash", "-c", SORTED) == "30000\nmktemp\n"
    assert "localhost" in run(trust, tmp_path, "bash", "-c", LOOKING)


@needs("git")
def test_git_looks_where_it_may_not_write_and_commits_where_it_may(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("one\n")
    run("unasked", tmp_path, "bash", "-c", f"git init -q && git add file && {COMMIT} && git gc -q")
    (tmp_path / "file").write_text("two\n")
    looked = run("proven", tmp_path, "bash", "-c", "git status --short && git log --format=%s && git diff --stat")
    assert looked.startswith(" M file\nfirst\n file | 2 +-")


@BOTH
@needs("node")
def test_node_has_threads_and_children(trust: CommandOrigin, tmp_path: Path) -> None:
    printed = run(trust, tmp_path, "node", "-e", NODE)
    assert sorted(printed.splitlines()) == ["ran", "read true", "spawned 0", "worker 0"]


@BOTH
@needs("javac", "java")
def test_java_has_threads_and_children(trust: CommandOrigin, tmp_path: Path) -> None:
    (tmp_path / "Main.java").write_text(JAVA)
    assert run(trust, tmp_path, "java", "-Xshare:auto", "Main.java") == "42\n0\n"


@BOTH
@needs("java")
def test_java_says_its_version(trust: CommandOrigin, tmp_path: Path) -> None:
    assert "version" in run(trust, tmp_path, "java", "-version")


@BOTH
def test_python_runs_its_threads_loops_and_children(trust: CommandOrigin, tmp_path: Path) -> None:
    script = (
        "import asyncio, subprocess, threading; thread = threading.Thread(target=print, args=('thread',));"
        " thread.start(); thread.join(); asyncio.run(asyncio.sleep(0)); subprocess.run(['echo', 'child'])"
    )
    assert run(trust, tmp_path, os.path.realpath(sys.executable), "-I", "-u", "-c", script) == "thread\nchild\n"


@needs("gcc", "make")
def test_a_compiler_builds_what_then_runs(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(THREADS_IN_C)
    (tmp_path / "Makefile").write_text("main: main.c\n\t$(CC) -pthread -o $@ $<\n")
    assert run("unasked", tmp_path, "bash", "-c", "make -s && ./main && touch main && cp -a main copy && ./copy") == (
        "joined\njoined\n"
    )


@needs("tar")
def test_an_archive_is_packed_and_unpacked(tmp_path: Path) -> None:
    script = "mkdir one && echo text >one/file && tar cf a.tar one && rm -r one && tar xf a.tar && cat one/file"
    assert run("unasked", tmp_path, "bash", "-c", script) == "text\n"


@needs("npm")
def test_npm_installs_a_package_from_disk(tmp_path: Path) -> None:
    (tmp_path / "dependency").mkdir()
    (tmp_path / "dependency" / "package.json").write_text('{"name": "dependency", "version": "1.0.0"}')
    (tmp_path / "package.json").write_text('{"name": "here", "version": "1.0.0"}')
    quiet = "--cache /tmp/cache --offline --no-audit --no-fund --silent"
    run(
        "unasked",
        tmp_path,
        "bash",
        "-c",
        f"npm pack {quiet} ./dependency && npm install {quiet} ./dependency-1.0.0.tgz",
    )
    assert (tmp_path / "node_modules" / "dependency" / "package.json").is_file()


@needs("cargo")
def test_cargo_builds_a_crate(tmp_path: Path) -> None:
    script = "cargo init -q --vcs none --name crate_here && cargo build -q --offline && ./target/debug/crate_here"
    assert run("unasked", tmp_path, "bash", "-c", script) == "Hello, world!\n"


def test_a_file_that_is_created_to_run_as_its_owner_loses_that_with_its_first_byte(tmp_path: Path) -> None:
    script = (
        "import os; file = os.open('tool', os.O_CREAT | os.O_WRONLY, 0o6755);"
        " os.write(file, b'x'); print(oct(os.fstat(file).st_mode & 0o6000))"
    )
    assert run("unasked", tmp_path, os.path.realpath(sys.executable), "-I", "-c", script) == "0o0\n"
