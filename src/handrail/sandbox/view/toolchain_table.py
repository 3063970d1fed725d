"""Where people keep compilers, interpreters and packages in their home: what a command needs of it, and no more.

A folder is shown whole only where no tool keeps credentials in it; of others the parts are shown that programs and
packages are in. Caches that their tool must write to are left out: the tool makes an empty one in the private home.
"""

from typing import NamedTuple


class Toolchain(NamedTuple):
    """One tool's folder. A variable that names a folder moves it."""

    name: str
    folder: str
    """In the home folder, or absolute; empty where only the variable says."""
    variable: str = ""
    parts: tuple[str, ...] = ()
    """What is shown of it; all of it where there are none."""
    withheld: tuple[str, ...] = ()
    """What is in these and is not shown."""


TOOLCHAINS = (
    Toolchain("programs", ".local", parts=("bin", "lib")),
    # Python
    Toolchain("pyenv", ".pyenv", "PYENV_ROOT"),
    Toolchain("uv pythons", ".local/share/uv/python", "UV_PYTHON_INSTALL_DIR"),
    Toolchain("uv tools", ".local/share/uv/tools", "UV_TOOL_DIR"),
    Toolchain("pipx", ".local/share/pipx", "PIPX_HOME"),
    Toolchain("pipx before 1.3", ".local/pipx", parts=("venvs", "shared", "py")),
    Toolchain("poetry", ".local/share/pypoetry", "POETRY_HOME", ("venv", "bin")),
    Toolchain("poetry environments", ".cache/pypoetry/virtualenvs"),
    Toolchain("hatch", ".local/share/hatch", parts=("env", "pythons")),
    Toolchain("rye", ".rye", "RYE_HOME", withheld=("config.toml",)),
    Toolchain("virtualenvwrapper", ".virtualenvs", "WORKON_HOME"),
    Toolchain("pipenv", ".local/share/virtualenvs"),
    *(
        Toolchain("conda", folder, withheld=(".condarc", "condarc", "etc/conda"))
        for folder in ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda/envs")
    ),
    # JavaScript
    Toolchain("nvm", ".nvm", "NVM_DIR"),
    Toolchain("fnm", ".local/share/fnm", "FNM_DIR"),
    Toolchain("fnm of old", ".fnm"),
    Toolchain("volta", ".volta", "VOLTA_HOME", ("bin", "tools")),
    Toolchain("nodenv", ".nodenv", "NODENV_ROOT"),
    Toolchain("n", "", "N_PREFIX", ("bin", "lib", "n")),
    Toolchain("bun", ".bun", "BUN_INSTALL", ("bin", "install/global")),
    Toolchain("deno", ".deno", "DENO_INSTALL", ("bin",)),
    Toolchain("pnpm", ".local/share/pnpm", "PNPM_HOME", withheld=("rc", "auth.ini")),
    Toolchain("yarn", ".yarn", parts=("bin", "releases")),
    Toolchain("yarn global", ".config/yarn/global", parts=("node_modules",)),
    Toolchain("npm global", ".npm-global", parts=("bin", "lib")),
    # Rust, Go, Zig
    Toolchain("cargo", ".cargo", "CARGO_HOME", ("bin", "git", "registry")),
    Toolchain("rustup", ".rustup", "RUSTUP_HOME"),
    Toolchain("go", "go", "GOPATH", ("bin", "pkg")),
    Toolchain("go itself", ".go", "GOROOT"),
    Toolchain("go modules", "go/pkg/mod", "GOMODCACHE"),
    Toolchain("zvm", ".zvm"),
    # JVM
    Toolchain("sdkman", ".sdkman", "SDKMAN_DIR"),
    Toolchain("jenv", ".jenv", "JENV_ROOT"),
    Toolchain("jabba", ".jabba", "JABBA_HOME", ("bin", "jdk", "default.alias")),
    Toolchain("jdks", ".jdks"),
    Toolchain("java", "", "JAVA_HOME"),
    Toolchain("maven", ".m2", parts=("repository", "wrapper")),
    Toolchain("gradle", ".gradle", "GRADLE_USER_HOME", ("jdks", "wrapper")),
    Toolchain("coursier", ".local/share/coursier", parts=("bin",)),
    Toolchain("coursier packages", ".cache/coursier", "COURSIER_CACHE", ("v1", "arc", "jvm")),
    Toolchain("ivy", ".ivy2", parts=("cache", "local")),
    # Ruby, PHP, Perl
    Toolchain("rbenv", ".rbenv", "RBENV_ROOT"),
    Toolchain("rvm", ".rvm", "rvm_path", ("bin", "environments", "gems", "rubies", "scripts", "wrappers", "lib")),
    Toolchain("rubies", ".rubies"),
    Toolchain("gems", ".gem", "GEM_HOME", ("ruby", "bin", "gems", "specifications", "extensions")),
    Toolchain("gems by XDG", ".local/share/gem", parts=("ruby",)),
    Toolchain("composer", ".config/composer", "COMPOSER_HOME", ("vendor",)),
    Toolchain("composer of old", ".composer", parts=("vendor",)),
    Toolchain("perlbrew", "perl5", "PERLBREW_ROOT", ("bin", "lib", "perls", "perlbrew")),
    # Haskell, OCaml, Julia, R, Elixir, Lua, Nim, Crystal, Swift, Lean
    Toolchain("ghcup", ".ghcup", withheld=("config.yaml",)),
    Toolchain("cabal", ".cabal", "CABAL_DIR", ("bin", "packages", "share", "store")),
    Toolchain("cabal store", ".local/state/cabal", parts=("store",)),
    Toolchain("stack", ".stack", "STACK_ROOT", ("pantry", "programs", "snapshots")),
    Toolchain("opam", ".opam", "OPAMROOT", withheld=("plugins", "log")),
    Toolchain("juliaup", ".juliaup"),
    Toolchain("julia", ".julia", parts=("artifacts", "compiled", "juliaup", "packages", "registries", "environments")),
    Toolchain("R", "R/x86_64-pc-linux-gnu-library", "R_LIBS_USER"),
    Toolchain("mix", ".mix", "MIX_HOME", ("archives", "elixir", "escripts")),
    Toolchain("hex", ".hex", "HEX_HOME", ("packages",)),
    Toolchain("luarocks", ".luarocks", parts=("bin", "lib", "share")),
    Toolchain("nimble", ".nimble", parts=("bin", "pkgs", "pkgs2")),
    Toolchain("choosenim", ".choosenim"),
    Toolchain("swiftly", ".local/share/swiftly", "SWIFTLY_HOME_DIR"),
    Toolchain("elan", ".elan", "ELAN_HOME"),
    # .NET, Dart, Android
    Toolchain(
        "dotnet",
        ".dotnet",
        "DOTNET_ROOT",
        ("dotnet", "host", "packs", "sdk", "sdk-manifests", "shared", "templates", "tools", "library-packs"),
    ),
    Toolchain("nuget", ".nuget", parts=("packages",)),
    Toolchain("flutter", "flutter", "FLUTTER_ROOT", ("bin", "packages", "version")),
    Toolchain("dart", ".pub-cache", "PUB_CACHE", ("bin", "git", "global_packages", "hosted", "hosted-hashes")),
    *(
        Toolchain("android", folder, variable, ("build-tools", "cmdline-tools", "ndk", "platform-tools", "platforms"))
        for folder, variable in (("Android/Sdk", "ANDROID_HOME"), ("Android/Sdk", "ANDROID_SDK_ROOT"))
    ),
    # several languages
    Toolchain("asdf", ".asdf", "ASDF_DATA_DIR"),
    Toolchain("mise", ".local/share/mise", "MISE_DATA_DIR"),
    Toolchain("proto", ".proto", "PROTO_HOME", ("bin", "plugins", "shims", "tools")),
    Toolchain("pixi", ".pixi", "PIXI_HOME", ("bin", "envs")),
    Toolchain("nix profile", ".nix-profile"),
    Toolchain("nix profiles", ".local/state/nix", parts=("profile", "profiles")),
    *(
        Toolchain(
            "homebrew", folder, variable, ("bin", "sbin", "lib", "opt", "Cellar", "include", "share", "etc/openssl@3")
        )
        for folder, variable in (("/home/linuxbrew/.linuxbrew", "HOMEBREW_PREFIX"), (".linuxbrew", ""))
    ),
)

ENVIRONMENTS = ("VIRTUAL_ENV", "CONDA_PREFIX")
"""Variables that name an environment that somebody has activated."""
WITHHELD_IN_ENVIRONMENTS = ("pip.conf", ".condarc", "condarc", "etc/conda")
"""Settings of an environment that may hold the password of a package index."""
