"""The one table of programs that start other programs, and how their words name the command."""

import msgspec


class Wrapper(msgspec.Struct, frozen=True, kw_only=True):
    """Where the command stands among the words of a program that starts it."""

    values: str = ""
    """Short options whose value may be the next word, a letter each."""
    long_values: str = ""
    """Long options of that kind, without their dashes. Those that need no value are not among them: what follows them
    would be hidden."""
    pairs: str = ""
    """Long options with two values."""
    skipped: int | None = 0
    """How many operands come before the command: timeout's seconds. None where the words do not spell it out."""
    assigns: bool = False
    """Whether NAME=value may stand before the command."""
    text: str = ""
    """An option whose value is a command in a string: `-c`. Several are separated by blanks."""
    silent: str = ""
    """Options with which it only tells about the command: `command -v`."""
    joins: bool = False
    """Whether it joins its words into one command for a shell: `watch`."""
    quotes: bool = False
    """Whether a word with a blank in it is a command: `concurrently 'npm start'`."""


_OPAQUE = Wrapper(skipped=None)
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
"""Those that are not of the class exec.wrapper, since another class says more: they fetch, build or change git."""
_UNSPELLED = (
    "at", "batch", "crontab", "eval", "source", ".", "trap", "find", "fd", "fdfind", "capsh", "scriptreplay",
    "start-stop-daemon", "alias", "enable", "direnv", "corepack", "schroot", "proot", "daemonize", "pm2", "forever",
    "onchange", "chokidar", "fnm exec", "nix run", "nix develop", "rye run", "pixi run", "dotenvx run", "op run",
    "doppler run", "aws-vault exec",
)  # fmt: skip
"""Those whose words name the command in a way of their own, or not at all."""

WRAPPERS: dict[str, Wrapper] = {
    **dict.fromkeys((*_UNSPELLED, *_OTHER_CLASSES), _OPAQUE),
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
    "timeout": Wrapper(values="ks", long_values="kill-after signal", skipped=1),
    "gtimeout": Wrapper(values="ks", long_values="kill-after signal", skipped=1),
    "nice": Wrapper(values="n", long_values="adjustment"),
    "ionice": Wrapper(values="cn", long_values="class classdata"),
    "chrt": Wrapper(values="TPD", skipped=1),
    "taskset": Wrapper(skipped=1),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "stdbuf": Wrapper(values="ioe", long_values="input output error"),
    "time": Wrapper(values="fo", long_values="format output"),
    "watch": Wrapper(values="n", long_values="interval", joins=True),
    "parallel": Wrapper(values="jSa", joins=True),
    "strace": Wrapper(values="abeEIoOpPsSuUX", long_values="output trace"),
    "ltrace": Wrapper(values="aADeFlnopsuwx"),
    "perf": Wrapper(skipped=1, values="eo"),
    "valgrind": Wrapper(),
    "unbuffer": Wrapper(),
    "catchsegv": Wrapper(),
    "faketime": Wrapper(skipped=1),
    "setpriv": Wrapper(long_values="reuid regid groups inh-caps ambient-caps bounding-set securebits"),
    "prlimit": Wrapper(values="p"),
    "numactl": Wrapper(values="CNmip"),
    "xvfb-run": Wrapper(values="efnpsw"),
    "dbus-run-session": Wrapper(),
    "flock": Wrapper(values="wE", long_values="timeout conflict-exit-code", skipped=1, text="-c --command"),
    "chroot": Wrapper(long_values="userspec groups", skipped=1),
    "unshare": Wrapper(values="SGRw", long_values="root wd map-user map-group setuid setgid propagation"),
    "nsenter": Wrapper(values="tSG", long_values="target setuid setgid"),
    "firejail": Wrapper(),
    "bwrap": Wrapper(
        long_values="""dev proc tmpfs dir chdir hostname uid gid cap-add cap-drop unsetenv lock-file sync-fd seccomp
            args remount-ro mqueue perms size userns pidns""",
        pairs="""bind bind-try dev-bind dev-bind-try ro-bind ro-bind-try setenv symlink file bind-data ro-bind-data
            chmod""",
    ),
    "systemd-run": Wrapper(values="pMEuH", long_values="property unit setenv uid gid slice description"),
    "entr": Wrapper(),
    "xargs": Wrapper(
        values="aEILnPsd",
        long_values="arg-file delimiter max-args max-procs max-chars process-slot-var",
    ),
    "script": Wrapper(skipped=None, text="-c --command"),
    "command": Wrapper(silent="-v -V"),
    "builtin": Wrapper(),
    "exec": Wrapper(values="a"),
    "coproc": Wrapper(),
    "npx": Wrapper(values="p", long_values="package", text="-c --call"),
    "bunx": Wrapper(),
    "pnpx": Wrapper(),
    "uvx": Wrapper(values="p", long_values="from with python"),
    "pipx run": Wrapper(long_values="spec"),
    "uv run": Wrapper(values="pm", long_values="with python package extra group env-file directory project"),
    "poetry run": Wrapper(),
    "pipenv run": Wrapper(),
    "pdm run": Wrapper(),
    "conda run": Wrapper(values="np", long_values="name prefix"),
    "bundle exec": Wrapper(),
    "npm exec": Wrapper(values="p", long_values="package", text="-c --call"),
    "pnpm exec": Wrapper(),
    "yarn exec": Wrapper(),
    "mise exec": Wrapper(),
    "nix-shell": Wrapper(values="pA", skipped=None, text="--run --command"),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "hyperfine": Wrapper(
        values="wmMrLPpcsSNnui", long_values="warmup runs prepare setup cleanup shell export-json", quotes=True
    ),
    "screen": Wrapper(values="SchpTst", quotes=True),
    "tmux": Wrapper(skipped=None, quotes=True),
    "concurrently": Wrapper(skipped=None, quotes=True),
    "watchexec": Wrapper(values="defiorswN", quotes=True),
    "chpst": Wrapper(values="uUbemdorpflcts"),
    "direnv exec": Wrapper(skipped=1),
    "hatch run": Wrapper(),
    "mamba run": Wrapper(values="np", long_values="name prefix"),
    "micromamba run": Wrapper(values="np", long_values="name prefix"),
    "asdf exec": Wrapper(),
    "pyenv exec": Wrapper(),
    "rbenv exec": Wrapper(),
    "rustup run": Wrapper(skipped=1),
    "volta run": Wrapper(long_values="node npm pnpm yarn"),
    "mise x": Wrapper(),
    "npm x": Wrapper(values="p", long_values="package", text="-c --call"),
    "pnpm dlx": Wrapper(),
    "yarn dlx": Wrapper(),
    "fakeroot": Wrapper(values="lisb"),
    "setarch": Wrapper(skipped=1),
    "linux32": Wrapper(),
    "linux64": Wrapper(),
    "gosu": Wrapper(skipped=1),
    "su-exec": Wrapper(skipped=1),
    "run0": Wrapper(values="ugD", long_values="user group chdir unit"),
    "tini": Wrapper(values="pe"),
    "dumb-init": Wrapper(),
    "rlwrap": Wrapper(values="fHs"),
    "eatmydata": Wrapper(),
    "proxychains": Wrapper(values="f"),
    "proxychains4": Wrapper(values="f"),
    "torsocks": Wrapper(),
    "cpulimit": Wrapper(values="lpe", long_values="limit"),
    "chronic": Wrapper(),
    "ifne": Wrapper(),
    "cross-env": Wrapper(assigns=True),
    "dotenv": Wrapper(values="e"),
    "nodemon": Wrapper(text="-x --exec", quotes=True),
    "runcon": Wrapper(values="urtl", long_values="user role type range", skipped=1),
    "sg": Wrapper(skipped=1, text="-c"),
    "setuidgid": Wrapper(skipped=1),
    "s6-setuidgid": Wrapper(skipped=1),
    "envdir": Wrapper(skipped=1),
    "softlimit": Wrapper(values="amdsfoplcrt"),
    "sshpass": Wrapper(values="pfdP"),
    "ssh-agent": Wrapper(values="aEPt"),
    "dbus-launch": Wrapper(),
    "fakechroot": Wrapper(),
    "catatonit": Wrapper(),
    "torify": Wrapper(),
    "tsocks": Wrapper(),
}
CLASSED = frozenset(WRAPPERS).difference(_OTHER_CLASSES)
"""Those of the class exec.wrapper."""
SHELLS = frozenset(["sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh"])
"""Take a command in a string behind -c."""
GIT_VALUES = frozenset(["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"])
"""What git takes with a value before its sub-command."""
