"""Classes of programs: interpreters, builds, network, git, and programs that start programs."""

import msgspec

from handrail.policy.programs.spec import ProgramClass, ProgramSpec

# § [policy.tables.git_groups] git beyond reading: what changes the repository, and what reaches another machine.

_WRITING = """
    add am apply bisect branch checkout cherry-pick clean commit merge mv notes rebase reset restore revert
    rm sparse-checkout stash switch tag worktree gc prune repack pack-refs reflog rerere replace update-index update-ref
    write-tree commit-tree read-tree symbolic-ref format-patch archive bundle fsck hash-object
    checkout-index merge-file merge-tree stage range-diff
"""
_STEERING = "config init remote maintenance filter-branch citool gui mergetool difftool"
_REMOTE = """
    push fetch pull clone ls-remote fetch-pack send-pack send-email submodule request-pull lfs svn p4 daemon
    http-fetch http-push imap-send credential subtree
"""

GIT_GROUPS: tuple[ProgramClass, ...] = (
    ProgramClass(
        rule="git.write",
        reason="changes the repository and may run its hooks",
        grantable=True,
        programs=frozenset(f"git {sub}" for sub in _WRITING.split()),
    ),
    ProgramClass(
        rule="git.write",
        reason="changes what steers git, or runs what it is told to",
        programs=frozenset(f"git {sub}" for sub in _STEERING.split()),
    ),
    ProgramClass(
        rule="git.network",
        reason="reaches another repository",
        effect="network",
        programs=frozenset(f"git {sub}" for sub in _REMOTE.split()) | {"git remote show", "git remote update"},
    ),
)


# § [policy.tables.network_groups] Programs that reach other machines, and package managers, which do so for some of
# § their sub-commands.

FETCHING: dict[str, str] = {
    "npm": """install i ci add update up upgrade uninstall remove publish audit outdated view info search login logout
        init create dist-tag deprecate fund ping star token whoami owner access pack link""",
    "pnpm": "install i add update up upgrade remove rm publish audit outdated dlx create fetch import link",
    "yarn": "install add upgrade up remove publish audit outdated dlx create global info npm",
    "bun": "install i add update remove publish create x",
    "deno": "install add cache update",
    "pip": "install download wheel index search uninstall",
    "pip3": "install download wheel index search uninstall",
    "uv": "sync add remove lock pip tool python publish self",
    "poetry": "install add remove update lock publish self search source",
    "pipenv": "install uninstall update lock sync upgrade",
    "pdm": "install add remove update lock sync publish",
    "conda": "install create update remove env search",
    "mamba": "install create update remove env search",
    "cargo": "install add update fetch publish search login vendor generate-lockfile remove uninstall yank owner",
    "go": "get install mod work",
    "gem": "install update fetch push uninstall search outdated",
    "bundle": "install update add outdated lock remove",
    "composer": "install update require remove create-project global outdated search self-update",
    "dotnet": "restore add nuget publish workload tool new",
    "mix": "deps.get deps.update hex.publish local.hex archive.install",
    "swift": "package",
    "mvn": "deploy install dependency:resolve",
    "flutter": "pub",
    "dart": "pub",
}
_MANAGERS = """
    npm pnpm yarn pip pip3 uv poetry pipenv pdm hatch flit conda mamba micromamba gem
    bundle bundler composer flutter dart rustup nvm fnm volta asdf mise pyenv rbenv sdk
"""
_SYSTEM_MANAGERS = """
    apt apt-get aptitude dnf yum rpm dpkg apk brew port pacman zypper snap flatpak nix nix-env emerge choco winget scoop
"""
_CLIENTS = """
    curl wget wget2 aria2c axel http https httpie xh ssh scp sftp ssh-copy-id ssh-add mosh ftp lftp tftp nc ncat netcat
    telnet socat openssl dig nslookup host drill whois ping ping6 traceroute tracepath mtr nmap rsync rclone gh glab hub
    aws gcloud gsutil az doctl heroku fly flyctl vercel netlify wrangler firebase kubectl oc k9s helm docker podman
    nerdctl buildah skopeo docker-compose vagrant terraform tofu terragrunt pulumi ansible ansible-playbook packer
    consul vault nomad svn hg bzr mail mailx sendmail mutt irssi youtube-dl yt-dlp cloudflared ngrok tailscale
"""

NETWORK_GROUPS: tuple[ProgramClass, ...] = (
    ProgramClass(
        rule="exec.package-manager",
        reason="fetches packages from the network and runs their scripts",
        effect="network",
        programs=frozenset(f"{name} {sub}" for name, subs in FETCHING.items() for sub in subs.split())
        | frozenset(_SYSTEM_MANAGERS.split())
        | frozenset(["python -m pip", "python3 -m pip", "npx", "pnpx", "bunx", "uvx", "pipx"]),
    ),
    ProgramClass(
        rule="exec.package-manager",
        reason="runs scripts of the project or of its packages",
        grantable=True,
        programs=frozenset(_MANAGERS.split()) | {"npm run", "pnpm run", "yarn run", "composer run"},
    ),
    ProgramClass(
        rule="exec.network",
        reason="reaches other machines",
        effect="network",
        programs=frozenset(_CLIENTS.split()),
    ),
)


# § [policy.commands.wrappers] The one table of programs that start other programs, and how their words name the
# § command.


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


# § [policy.tables.groups] Programs that nobody can judge by their words, in named classes: each asks, and says why.


def _names(text: str, *longer: str) -> frozenset[str]:
    return frozenset(text.split()) | frozenset(longer)


_RUNNING = (
    ProgramClass(
        rule="exec.interpreter",
        reason="runs the code that it is given",
        programs=_names(
            """python python2 python3 pypy pypy3 ipython node nodejs deno bun ruby irb perl php lua luajit R Rscript
            julia tclsh wish guile racket sbcl clisp ghci runghc scala kotlin groovy jshell java erl elixir iex swift
            ts-node tsx awk gawk mawk nawk sed gsed bc dc sqlite3 psql mysql mariadb mongosh mongo redis-cli osascript
            pwsh powershell cmd sh bash rbash dash ash zsh ksh mksh fish csh tcsh busybox toybox ed ex vi vim view nvim
            emacs nano pico micro gdb lldb expect m4 jupyter spark-shell octave gnuplot wine""",
            "go run",
        ),
    ),
    ProgramClass(
        rule="exec.wrapper",
        reason="runs another program",
        programs=CLASSED,
    ),
    ProgramClass(
        rule="exec.pager",
        reason="can start an editor or a shell",
        programs=_names("less more most man info lesspipe bat pinfo w3m lynx links"),
    ),
)
_PROJECT = (
    ProgramClass(
        rule="exec.test",
        reason="runs the project's own code",
        grantable=True,
        programs=_names(
            """pytest py.test tox nox jest vitest mocha ava karma cypress playwright rspec phpunit pest ctest behave
            nose2 nosetests trial hatch-test gotestsum bats prove shunit2 busted""",
            "python -m pytest", "python3 -m pytest", "python -m unittest", "python3 -m unittest", "uv run pytest",
            "poetry run pytest", "pipenv run pytest", "hatch test", "npm test", "npm t", "npm run test", "pnpm test",
            "pnpm run test", "yarn test", "yarn run test", "bun test", "deno test", "npx jest", "npx vitest",
            "npx mocha", "cargo test", "cargo nextest", "cargo bench", "go test", "make test", "make check",
            "gradle test", "mvn test", "mvn verify", "dotnet test", "swift test", "mix test", "rake test", "rails test",
            "bundle exec rspec", "zig test", "bazel test", "meson test", "ninja test", "composer test", "stack test",
        ),
    ),
    ProgramClass(
        rule="exec.build",
        reason="runs what the project's build says",
        grantable=True,
        programs=_names(
            """make gmake cmake ninja meson gradle mvn ant bazel bazelisk buck2 sbt scons waf just task mage rake tsc
            webpack vite rollup esbuild parcel turbo nx next gcc g++ cc c++ clang clang++ ld ar ranlib as rustc javac
            kotlinc scalac ghc cabal stack dotnet msbuild xcodebuild swiftc zig cargo go protoc cython nasm tex latex
            pdflatex xelatex latexmk hugo mkdocs sphinx-build mix rebar3 configure autoconf automake""",
            "cargo build", "cargo check", "cargo clippy", "cargo doc", "cargo run", "go build", "go vet",
            "go generate", "swift build", "npm run build", "pnpm build", "pnpm run build", "yarn build",
            "python -m build", "python3 -m build", "mvn package", "mvn compile", "dotnet build",
        ),
    ),
    ProgramClass(
        rule="exec.formatter",
        reason="rewrites files, or runs plugins of the project",
        grantable=True,
        programs=_names(
            """ruff black isort autopep8 yapf flake8 pylint mypy pyright basedpyright ty prettier eslint biome standard
            stylelint gofmt goimports golangci-lint staticcheck rustfmt clang-format clang-tidy shfmt shellcheck
            rubocop standardrb php-cs-fixer phpcs phpstan ktlint google-java-format dprint taplo buf swiftformat
            swiftlint mix-format pre-commit lint-staged djlint sqlfluff terraform-fmt autoflake bandit hadolint""",
            "cargo fmt", "go fmt", "go fix", "npx prettier", "npx eslint", "npx tsc", "mix format", "dart format",
            "python -m ruff", "python -m black", "python -m mypy", "python3 -m ruff", "python3 -m black",
            "python3 -m mypy", "npm run lint", "npm run format", "deno fmt", "deno lint", "uv run ruff", "zig fmt",
        ),
    ),
)  # fmt: skip
_MACHINE = (
    ProgramClass(
        rule="exec.archive",
        reason="writes the names that an archive holds, and may run a program",
        programs=_names(
            """tar gtar bsdtar zip unzip gzip gunzip bzip2 bunzip2 xz unxz lzma zstd unzstd lz4 7z 7za 7zz rar unrar
            cpio pax shar split csplit""",
        ),
    ),
    ProgramClass(
        rule="exec.system",
        reason="changes processes, users or the machine",
        programs=_names(
            """kill pkill killall renice mount umount fusermount losetup swapon swapoff fdisk parted sfdisk wipefs
            systemctl service journalctl launchctl loginctl useradd userdel usermod groupadd groupdel passwd chsh
            visudo hostname hostnamectl timedatectl sysctl modprobe insmod rmmod iptables ip ifconfig nft ufw
            setcap chattr setfacl ulimit umask ldconfig update-alternatives xdg-open open shred mkfifo mknod
            export unset declare typeset local readonly set shopt hash""",
        ),
    ),
)
GROUPS: tuple[ProgramClass, ...] = (*_RUNNING, *_PROJECT, *_MACHINE, *NETWORK_GROUPS, *GIT_GROUPS)


# § [policy.tables.versions] Programs that may do anything, but not when they are only asked for their version.  Not
# § here are those that look at the workspace first, to choose the version that answers (cargo, rustc, go, yarn) or
# § to read their settings (npm, php), and those that leave something behind (java).

_DASHED = (
    "bash zsh cc c++ gcc g++ clang clang++ make cmake ninja curl wget deno node perl pip pip3 python python2 python3 "
    "ruby ruff uv lua sqlite3 gdb tar gawk psql"
)
_PYTHONS = tuple(f"python3.{minor}" for minor in range(8, 16))
_SHORT = "node -v,python -V,python2 -V,python3 -V,perl -v,ruby -v,lua -v,make -v,pip -V,pip3 -V"

VERSIONS = (
    ProgramSpec(
        name="python3 --version",
        also=tuple(
            sorted(
                {f"{name} --version" for name in (*_DASHED.split(), *_PYTHONS)} - {"python3 --version"}
                | {f"{name} -V" for name in _PYTHONS}
                | {*_SHORT.split(",")}
            )
        ),
        operands=None,
        match=("python3 --version", "node -v", "python3.11 -V", "make -v", "gcc --version"),
        no_match=(
            "python3 --version -c x", "node -v x.js", "python3 -c x --version", "cargo --version",
            "node x.js --version", "bash --version -c id", "python3 -VV", "yarn --version",
            "gcc --version --wrapper=x a.c", "curl --version x", "npm --version",
            "java -version", "go version", "rustc --version",
        ),
    ),
)  # fmt: skip
