"""The table of programs that start others loses no name, and its options are split leniently."""

import pytest

from handrail.policy.programs.options import LooseArgument, split_git_options, split_options
from handrail.policy.programs.wrapper_table import CLASSED, INTERPRETERS, SHELLS, WRAPPERS
from handrail.policy.wrappers import can_run_code

PROGRAMS = """
    . alias at batch builtin bunx busybox bwrap capsh catatonit catchsegv chokidar chpst chronic chroot chrt command
    concurrently coproc corepack cpulimit crontab cross-env daemonize dbus-launch dbus-run-session direnv doas dotenv
    dumb-init eatmydata enable entr env envdir eval exec fakechroot fakeroot faketime fd fdfind find firejail flock
    forever gosu gtimeout hyperfine ifne ionice linux32 linux64 ltrace nice nix-shell nodemon nohup npx nsenter
    numactl onchange parallel perf pkexec pm2 pnpx prlimit proot proxychains proxychains4 rlwrap run0 runcon runuser
    s6-setuidgid schroot screen script scriptreplay setarch setpriv setsid setuidgid sg softlimit source ssh ssh-agent
    sshpass start-stop-daemon stdbuf strace su su-exec sudo systemd-run taskset time timeout tini tmux torify torsocks
    toybox trap tsocks unbuffer unshare uvx valgrind watch watchexec xargs xvfb-run
"""
SUB_COMMANDS = """
    asdf_exec aws-vault_exec bun_run bun_x bundle_exec bundler_exec cabal_exec cabal_repl cargo_r cargo_run
    composer_exec conda_run dart_run direnv_exec docker_compose_exec docker_compose_run docker_container_exec
    docker_container_run docker_exec docker_run doppler_run dotenvx_run dotnet_exec dotnet_fsi dotnet_run
    dotnet_script fnm_exec gem_exec git_bisect_run git_submodule_foreach hatch_env hatch_run hatch_shell kubectl_debug
    kubectl_exec kubectl_run mamba_run micromamba_run mise_exec mise_x mix_eval mix_run nix_develop nix_run nix_shell
    npm_create npm_exec npm_explore npm_init npm_x nvm_exec nvm_run nx_exec op_run pdm_run pipenv_run pipenv_shell
    pipx_run pixi_run pnpm_dlx pnpm_exec pnpm_node podman_exec podman_run poetry_run poetry_shell pyenv_exec
    rbenv_exec rustup_run rye_run stack_eval stack_exec stack_ghci stack_repl stack_runghc stack_runhaskell
    stack_script uv_run uv_tool_run uv_x volta_run yarn_dlx yarn_exec yarn_node yarn_run zig_run
"""


def test_no_wrapper_is_lost() -> None:
    assert set(WRAPPERS) == {*PROGRAMS.split(), *(name.replace("_", " ") for name in SUB_COMMANDS.split())}


def test_every_wrapper_of_its_own_class_and_every_interpreter_runs_code() -> None:
    assert SHELLS <= INTERPRETERS
    assert [name for name in CLASSED | INTERPRETERS if not can_run_code(tuple(name.split()))] == []


@pytest.mark.parametrize(
    ("text", "options", "operands"),
    [
        ("", [], []),
        ("a b", [], ["a", "b"]),
        ("-o x a", [("-o", "x")], ["a"]),
        ("-ox a", [("-o", "x")], ["a"]),
        ("-vo x a", [("-o", "x")], ["a"]),
        ("-v -w a", [("-v", ""), ("-w", "")], ["a"]),
        ("--out x --out=y a", [("--out", "x"), ("--out", "y")], ["a"]),
        ("--other x", [("--other", "")], ["x"]),
        ("--other=x y", [("--other", "x")], ["y"]),
        ("--bind a b c", [("--bind", "a b")], ["c"]),
        ("--bind=a b", [("--bind", "a")], ["b"]),
        ("a -o", [("-o", "")], ["a"]),
        ("- a", [], ["-", "a"]),
        ("-v -- -o x", [("-v", "")], ["-o", "x"]),
    ],
)
def test_options_are_split_leniently(text: str, options: list[tuple[str, str]], operands: list[str]) -> None:
    words = tuple(text.split())
    arguments = list(split_options(words, {"-o", "--out"}, {"--bind"}))
    assert [(one.option, one.value) for one in arguments if one.option] == options
    assert [one.word for one in arguments if not one.option] == operands
    assert all(words[one.place] == one.word for one in arguments)


def test_a_bundle_keeps_the_word_it_stands_in() -> None:
    assert list(split_options(("-nie", "x"), {"-e"})) == [LooseArgument(0, "-nie", "-e", "x")]


@pytest.mark.parametrize(
    ("text", "options", "rest"),
    [
        ("git", "", ""),
        ("git push -f", "", "push -f"),
        ("git -C a -c x=y --no-pager push", "-C a -c x=y --no-pager", "push"),
        ("git --git-dir=x log", "--git-dir=x", "log"),
        ("git -C", "-C", ""),
    ],
)
def test_the_global_options_of_git_end_at_its_sub_command(text: str, options: str, rest: str) -> None:
    assert split_git_options(tuple(text.split())) == (tuple(options.split()), tuple(rest.split()))
