"""Classes of programs whose arguments do not show their effects."""

from handrail.policy.programs.spec import ProgramClass, ProgramSpec
from handrail.policy.programs.wrapper_table import CLASSED, INTERPRETERS

_GIT_WRITE = """
    add am apply bisect branch checkout cherry-pick clean commit merge mv notes rebase reset restore revert
    rm sparse-checkout stash switch tag worktree gc prune repack pack-refs reflog rerere replace update-index update-ref
    write-tree commit-tree read-tree symbolic-ref format-patch archive bundle fsck hash-object
    checkout-index merge-file merge-tree stage range-diff
"""
_GIT_STEER = "config init remote maintenance filter-branch citool gui mergetool difftool"
_GIT_REMOTE = """
    push fetch pull clone ls-remote fetch-pack send-pack send-email submodule request-pull lfs svn p4 daemon
    http-fetch http-push imap-send credential subtree
"""

_GIT: tuple[ProgramClass, ...] = (
    ProgramClass(
        rule="git.write",
        reason="changes the repository and may run its hooks",
        grantable=True,
        programs=frozenset(f"git {sub}" for sub in _GIT_WRITE.split()),
    ),
    ProgramClass(
        rule="git.write",
        reason="changes the settings of git, or runs programs",
        programs=frozenset(f"git {sub}" for sub in _GIT_STEER.split()),
    ),
    ProgramClass(
        rule="git.network",
        reason="reaches another repository",
        effect="network",
        programs=frozenset(f"git {sub}" for sub in _GIT_REMOTE.split()) | {"git remote show", "git remote update"},
    ),
)


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

_NETWORK: tuple[ProgramClass, ...] = (
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


def _names(text: str, *longer: str) -> frozenset[str]:
    return frozenset(text.split()) | frozenset(longer)


_RUNNING = (
    ProgramClass(
        rule="exec.interpreter",
        reason="runs the code that it is given",
        programs=INTERPRETERS,
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
        reason="can run any command of the build",
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
GROUPS: tuple[ProgramClass, ...] = (*_RUNNING, *_PROJECT, *_MACHINE, *_NETWORK, *_GIT)


# Asking these for their version is harmless. cargo, rustc, go and yarn look at the workspace first to choose the
# version that answers, npm and php read their settings there, and java leaves files behind.
_VERSION_PROGRAMS = (
    "bash zsh cc c++ gcc g++ clang clang++ make cmake ninja curl wget deno node perl pip pip3 python python2 python3 "
    "ruby ruff uv lua sqlite3 gdb tar gawk psql"
)
_PYTHONS = tuple(f"python3.{minor}" for minor in range(8, 16))
_VERSION_COMMANDS = "node -v,python -V,python2 -V,python3 -V,perl -v,ruby -v,lua -v,make -v,pip -V,pip3 -V"

VERSIONS = (
    ProgramSpec(
        name="python3 --version",
        also=tuple(
            sorted(
                {f"{name} --version" for name in (*_VERSION_PROGRAMS.split(), *_PYTHONS)} - {"python3 --version"}
                | {f"{name} -V" for name in _PYTHONS}
                | {*_VERSION_COMMANDS.split(",")}
            )
        ),
        operands=None,
        match=("python3 --version", "node -v", "python3.11 -V", "make -v", "gcc --version"),
        no_match=(
            "python3 --version -c x", "node -v x.js", "python3 -c x --version", "cargo --version",
            "node x.js --version", "bash --version -c id", "python3 -VV", "yarn --version",
            "gcc --version --wrapper=x a.c", "curl --version x", "npm --version", "java -version", "go version",
            "rustc --version",
        ),
    ),
)  # fmt: skip
