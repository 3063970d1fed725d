"""Programs that nobody can judge by their words, in named classes: each asks, and says why."""

from handrail.policy.commands.wrappers import CLASSED
from handrail.policy.tables.form import ProgramClass
from handrail.policy.tables.git_groups import GIT_GROUPS
from handrail.policy.tables.network_groups import NETWORK_GROUPS


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
