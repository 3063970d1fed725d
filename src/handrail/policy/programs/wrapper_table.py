"""Programs that start other programs."""

from typing import NamedTuple

import msgspec


class Wrapper(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a command among the words of the program that starts it."""

    values: str = ""
    """Letters of short options whose value may be the next word."""
    long_values: str = ""
    """Long options of that kind, without dashes. An option without a value must not be among them: it would hide the
    word behind it."""
    pairs: str = ""
    """Long options with two values."""
    skipped: int | None = 0
    """Number of operands before the command, such as timeout's seconds. None if the words do not spell it out."""
    assigns: bool = False
    """Whether NAME=value may stand before the command."""
    text: str = ""
    """Options whose value is a command in a string: `-c`."""
    silent: str = ""
    """Options with which it only describes the command: `command -v`."""
    joins: bool = False
    """Whether it joins its words into one command for a shell, as `watch` does."""
    quotes: bool = False
    """Whether a word with a blank in it is a command: `concurrently 'npm start'`."""

    @property
    def valued(self) -> frozenset[str]:
        """The options with a value, with their dashes."""
        short = [f"-{letter}" for letter in self.values]
        return frozenset([*short, *(f"--{name}" for name in self.long_values.split()), *self.text.split()])


_OTHER_CLASSES = (
    "npx", "pnpx", "bunx", "uvx", "uv tool run", "uv x", "pipx run", "pnpm dlx", "yarn dlx", "yarn run", "bun x",
    "bun run", "docker run", "docker exec", "docker compose run", "docker compose exec", "docker container run",
    "docker container exec", "podman run", "podman exec", "kubectl exec", "kubectl run", "kubectl debug", "ssh",
    "cargo run", "cargo r", "dotnet run", "dotnet exec", "dotnet fsi", "dotnet script", "git bisect run",
    "git submodule foreach", "npm explore", "npm init", "npm create", "nix shell", "bundler exec", "gem exec",
    "composer exec", "stack exec", "stack runghc", "stack runhaskell", "stack script", "stack eval", "stack ghci",
    "stack repl", "cabal exec", "cabal repl", "nvm exec", "nvm run", "zig run", "dart run", "mix run", "mix eval",
    "nx exec", "yarn node", "pnpm node", "poetry shell", "pipenv shell", "hatch shell", "hatch env", "busybox",
    "toybox",
)  # fmt: skip
"""Wrappers with a class other than exec.wrapper that says more: they fetch, build or change git."""
_UNSPELLED = (
    "at", "batch", "crontab", "eval", "source", ".", "trap", "find", "fd", "fdfind", "capsh", "scriptreplay",
    "start-stop-daemon", "alias", "enable", "direnv", "corepack", "schroot", "proot", "daemonize", "pm2", "forever",
    "onchange", "chokidar", "fnm exec", "nix run", "nix develop", "rye run", "pixi run", "dotenvx run", "op run",
    "doppler run", "aws-vault exec",
)  # fmt: skip
"""Wrappers whose words name the command in their own syntax, or not at all."""
_PLAIN = (
    "nohup", "setsid", "valgrind", "unbuffer", "catchsegv", "dbus-run-session", "firejail", "entr", "builtin", "coproc",
    "bunx", "pnpx", "poetry run", "pipenv run", "pdm run", "bundle exec", "pnpm exec", "yarn exec", "mise exec",
    "busybox", "toybox", "hatch run", "asdf exec", "pyenv exec", "rbenv exec", "mise x", "pnpm dlx", "yarn dlx",
    "linux32", "linux64", "dumb-init", "eatmydata", "torsocks", "chronic", "ifne", "dbus-launch", "fakechroot",
    "catatonit", "torify", "tsocks",
)  # fmt: skip
"""Wrappers whose options take no value."""
_WITH_OPERAND = (
    "taskset", "faketime", "direnv exec", "rustup run", "setarch", "gosu", "su-exec", "setuidgid",
    "s6-setuidgid", "envdir",
)  # fmt: skip
"""Wrappers with one operand before the command."""
_NPX = Wrapper(values="p", long_values="package", text="-c --call")
_CONDA = Wrapper(values="np", long_values="name prefix")
_TIMEOUT = Wrapper(values="ks", long_values="kill-after signal", skipped=1)
_PROXYCHAINS = Wrapper(values="f")

WRAPPERS: dict[str, Wrapper] = {
    **dict.fromkeys((*_UNSPELLED, *_OTHER_CLASSES), Wrapper(skipped=None)),
    **dict.fromkeys(_PLAIN, Wrapper()),
    **dict.fromkeys(_WITH_OPERAND, Wrapper(skipped=1)),
    **dict.fromkeys(("npx", "npm exec", "npm x"), _NPX),
    **dict.fromkeys(("conda run", "mamba run", "micromamba run"), _CONDA),
    **dict.fromkeys(("timeout", "gtimeout"), _TIMEOUT),
    **dict.fromkeys(("proxychains", "proxychains4"), _PROXYCHAINS),
    "env": Wrapper(values="uCa", long_values="unset chdir argv0", assigns=True, text="-S --split-string"),
    "sudo": Wrapper(
        values="ugpCcTrtUhDRa",
        long_values="user group prompt close-from command-timeout role type other-user host chdir chroot",
        assigns=True,
    ),
    "doas": Wrapper(values="uCa"),
    "su": Wrapper(values="gGsw", long_values="group shell", skipped=None, text="-c --command --session-command"),
    "runuser": Wrapper(values="ugGsw", long_values="user group shell", text="-c --command --session-command"),
    "pkexec": Wrapper(long_values="user"),
    "nice": Wrapper(values="n", long_values="adjustment"),
    "ionice": Wrapper(values="cn", long_values="class classdata"),
    "chrt": Wrapper(values="TPD", skipped=1),
    "stdbuf": Wrapper(values="ioe", long_values="input output error"),
    "time": Wrapper(values="fo", long_values="format output"),
    "watch": Wrapper(values="n", long_values="interval", joins=True),
    "parallel": Wrapper(values="jSa", joins=True),
    "strace": Wrapper(values="abeEIoOpPsSuUX", long_values="output trace"),
    "ltrace": Wrapper(values="aADeFlnopsuwx"),
    "perf": Wrapper(skipped=1, values="eo"),
    "setpriv": Wrapper(long_values="reuid regid groups inh-caps ambient-caps bounding-set securebits"),
    "prlimit": Wrapper(values="p"),
    "numactl": Wrapper(values="CNmip"),
    "xvfb-run": Wrapper(values="efnpsw"),
    "flock": Wrapper(values="wE", long_values="timeout conflict-exit-code", skipped=1, text="-c --command"),
    "chroot": Wrapper(long_values="userspec groups", skipped=1),
    "unshare": Wrapper(values="SGRw", long_values="root wd map-user map-group setuid setgid propagation"),
    "nsenter": Wrapper(values="tSG", long_values="target setuid setgid"),
    "bwrap": Wrapper(
        long_values="""dev proc tmpfs dir chdir hostname uid gid cap-add cap-drop unsetenv lock-file sync-fd seccomp
            args remount-ro mqueue perms size userns pidns""",
        pairs="""bind bind-try dev-bind dev-bind-try ro-bind ro-bind-try setenv symlink file bind-data ro-bind-data
            chmod""",
    ),
    "systemd-run": Wrapper(values="pMEuH", long_values="property unit setenv uid gid slice description"),
    "xargs": Wrapper(values="aEILnPsd", long_values="arg-file delimiter max-args max-procs max-chars process-slot-var"),
    "script": Wrapper(skipped=None, text="-c --command"),
    "command": Wrapper(silent="-v -V"),
    "exec": Wrapper(values="a"),
    "uvx": Wrapper(values="p", long_values="from with python"),
    "pipx run": Wrapper(long_values="spec"),
    "uv run": Wrapper(values="pm", long_values="with python package extra group env-file directory project"),
    "nix-shell": Wrapper(values="pA", skipped=None, text="--run --command"),
    "hyperfine": Wrapper(
        values="wmMrLPpcsSNnui", long_values="warmup runs prepare setup cleanup shell export-json", quotes=True
    ),
    "screen": Wrapper(values="SchpTst", quotes=True),
    "tmux": Wrapper(skipped=None, quotes=True),
    "concurrently": Wrapper(skipped=None, quotes=True),
    "watchexec": Wrapper(values="defiorswN", quotes=True),
    "chpst": Wrapper(values="uUbemdorpflcts"),
    "volta run": Wrapper(long_values="node npm pnpm yarn"),
    "fakeroot": Wrapper(values="lisb"),
    "run0": Wrapper(values="ugD", long_values="user group chdir unit"),
    "tini": Wrapper(values="pe"),
    "rlwrap": Wrapper(values="fHs"),
    "cpulimit": Wrapper(values="lpe", long_values="limit"),
    "cross-env": Wrapper(assigns=True),
    "dotenv": Wrapper(values="e"),
    "nodemon": Wrapper(text="-x --exec", quotes=True),
    "runcon": Wrapper(values="urtl", long_values="user role type range", skipped=1),
    "sg": Wrapper(skipped=1, text="-c"),
    "softlimit": Wrapper(values="amdsfoplcrt"),
    "sshpass": Wrapper(values="pfdP"),
    "ssh-agent": Wrapper(values="aEPt"),
}
CLASSED = frozenset(WRAPPERS).difference(_OTHER_CLASSES)
"""The wrappers of the class exec.wrapper."""
SHELLS = frozenset(["sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh"])
"""Programs that take a command in a string after -c."""
FIND_EXEC_OPTIONS = frozenset(["-exec", "-execdir", "-ok", "-okdir"])
_INTERPRETERS = """
    python python2 python3 pypy pypy3 ipython node nodejs deno bun ruby irb perl php lua luajit R Rscript julia tclsh
    wish guile racket sbcl clisp ghci runghc scala kotlin groovy jshell java erl elixir iex swift ts-node tsx awk gawk
    mawk nawk sed gsed bc dc sqlite3 psql mysql mariadb mongosh mongo redis-cli osascript pwsh powershell cmd busybox
    toybox ed ex vi vim view nvim emacs nano pico micro gdb lldb expect m4 jupyter spark-shell octave gnuplot wine
"""
INTERPRETERS = SHELLS.union(_INTERPRETERS.split(), ["go run"])
"""Programs that run the code they are given. The class exec.interpreter."""


class ProgramOptions(NamedTuple):
    """Options of a program that name another program to run."""

    letters: str
    """Short options, which may stand in a bundle."""
    names: tuple[str, ...]
    """Long options, without dashes."""
    assigned: bool = False
    """Whether an operand such as `SHELL=x` names one too."""


_MAKE = ProgramOptions("fEI", ("file", "makefile", "eval"), assigned=True)
_TEX = ("shell-escape", "enable-write18", "shell-restricted")
PROGRAM_OPTIONS: dict[str, ProgramOptions] = {
    "git rebase": ProgramOptions("x", ("exec",)),
    "git archive": ProgramOptions("", ("exec", "remote")),
    "git merge": ProgramOptions("s", ("strategy",)),
    "go": ProgramOptions("", ("exec", "toolexec", "vettool")),
    "cargo": ProgramOptions("", ("config",)),
    "rustc": ProgramOptions("C", ("codegen",)),
    "make": _MAKE,
    "gmake": _MAKE,
    "just": ProgramOptions("cf", ("command", "shell", "shell-arg", "shell-command", "justfile", "set")),
    "cmake": ProgramOptions("", ("E", "P")),
    "rake": ProgramOptions("eEpfr", ("execute", "execute-print", "execute-continue", "rakefile", "require")),
    "prove": ProgramOptions("e", ("exec",)),
    "pylint": ProgramOptions("", ("init-hook", "load-plugins")),
    "latexmk": ProgramOptions("er", ("latex", "pdflatex", "lualatex", "xelatex", *_TEX)),
    "protoc": ProgramOptions("", ("plugin",)),
    **dict.fromkeys(
        ("gcc", "g++", "cc", "c++", "clang", "clang++"), ProgramOptions("", ("wrapper", "fplugin", "specs"))
    ),
    **dict.fromkeys(("tex", "latex", "pdflatex", "xelatex"), ProgramOptions("", _TEX)),
}
"""Programs of the project's own that become wrappers by an option."""
