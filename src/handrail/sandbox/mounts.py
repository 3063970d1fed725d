"""The mounts that make up the file system of a command, toolchains included."""

import os
from collections.abc import Iterable, Iterator
from glob import escape, glob
from typing import Literal, NamedTuple

from handrail.policy.names import can_hold_credentials, is_credential
from handrail.sandbox.profile import SandboxHost
from handrail.settings.load import ToolchainObjection, find_toolchain_objection
from handrail.settings.paths import is_located_in, walk_links
from handrail.workspace.roots import is_inside

_MountKind = Literal[
    "shown",
    "read-only",
    "writable",
    "pinned",
    "sealed",
    "home",
    "own-file",
    "private",
    "link",
    "no-file",
    "no-folder",
    "processes",
    "devices",
    "proxy",
]
"""`shown`: a read-only part of the machine. `read-only`, `writable`: roots. `pinned`: a folder that cannot be renamed,
as writable as before. `sealed`: a read-only part of a root. `home`, `private`: an empty folder for this command alone.
`own-file`: a file in that home, written by handrail. `no-file`, `no-folder`: covers a path by something empty.
`proxy`: the socket of the proxy."""

_ROOTS = frozenset[_MountKind]({"read-only", "writable", "pinned", "sealed"})
_REAL = _ROOTS | {"shown"}
"""Mounts that show the disk as it is."""


class Mount(NamedTuple):
    """One mount. It shows the same path of the disk, unless it has a target."""

    kind: _MountKind
    place: str
    target: str = ""
    """The target of a link, or the path of handrail's own file or socket."""


def order_mounts(wanted: Iterable[Mount]) -> tuple[Mount, ...]:
    """The mounts in the order to make them: outer ones first. Of two at one place the later counts. Mounts without an
    effect are left out."""
    by_place = {mount.place: mount for mount in wanted}
    ordered: list[Mount] = []
    around: list[Mount] = []
    for mount in sorted(by_place.values(), key=lambda mount: mount.place.strip("/").split("/")):
        while around and not is_inside(mount.place, around[-1].place):
            around.pop()
        if _has_effect(mount, around[-1].kind if around else None):
            ordered.append(mount)
            around.append(mount)
    return tuple(ordered)


def is_shown(mounts: Iterable[Mount], path: str) -> bool:
    """Whether ordered mounts show a part of the disk at a path or below it."""
    around: Mount | None = None
    for mount in mounts:
        if is_inside(path, mount.place):
            around = mount  # the inner ones come later
        elif mount.kind in _REAL and is_inside(mount.place, path):
            return True
    if around and around.kind == "link":
        target = os.path.join(os.path.dirname(around.place), around.target)
        return is_shown(mounts, os.path.normpath(target).rstrip("/") + path.removeprefix(around.place))
    return bool(around and around.kind in _REAL)


def list_pins(sealed: Iterable[str], roots: Iterable[str]) -> Iterator[Mount]:
    """The folders between a root and sealed paths in it. A command that renames one could replace a sealed path."""
    writable = tuple(roots)
    for path in sealed:
        folder = path.rpartition("/")[0]
        while any(folder != root and is_inside(folder, root) for root in writable):
            yield Mount("pinned", folder)
            folder = folder.rpartition("/")[0]


def find_mounts(path: str) -> tuple[Mount, ...]:
    """The mounts that show a file or folder: the links on the way to it, and itself. Empty if it does not exist."""
    links, real = follow_links(path)
    if real == "/" or not os.path.lexists(real):
        return ()
    return (*links, Mount("shown", real))


def follow_links(path: str) -> tuple[tuple[Mount, ...], str]:
    """The links on the way to a path, each at its real place, and the real path."""
    steps, real = walk_links(path)
    return tuple(Mount("link", step.place, step.target) for step in steps if step.target), real


def build_empty_mount(path: str) -> Mount:
    return Mount("no-folder" if os.path.isdir(path) else "no-file", path)


def list_folder(folder: str) -> Iterator[str]:
    """The paths in a folder. None if it cannot be listed."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    yield from (f"{folder}/{name}" for name in sorted(names))


def has_content(folder: str) -> bool:
    """Whether a folder may have content. True if listing it is not permitted."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except PermissionError:
        return True
    except OSError:
        return False


def _has_effect(mount: Mount, around: _MountKind | None) -> bool:
    match mount.kind:
        case "shown" | "link":
            return around not in _REAL
        case "home":
            return around not in _ROOTS
        case "own-file":
            return around == "home"
        case "sealed" | "pinned":
            return around in _ROOTS
        case "no-file" | "no-folder":
            return around in _REAL
        case _:
            return True


# Toolchains


class Toolchain(NamedTuple):
    """The folder of one tool. Its variable may name another folder."""

    name: str
    folder: str
    """In the home folder, or absolute. Empty if only the variable names it."""
    variable: str = ""
    parts: tuple[str, ...] = ()
    """The visible parts. Empty: everything."""
    withheld: tuple[str, ...] = ()


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

_ENVIRONMENTS = ("VIRTUAL_ENV", "CONDA_PREFIX")
"""Variables that name an activated environment."""
_WITHHELD_IN_ENVIRONMENTS = ("pip.conf", ".condarc", "condarc", "etc/conda")
"""Files of an environment that may hold the password of a package index."""

_TOO_WIDE = "it contains the home folder, the state folder or too much of the machine"
_OBJECTIONS: dict[ToolchainObjection, str] = {
    "home": _TOO_WIDE,
    "state": _TOO_WIDE,
    "machine": _TOO_WIDE,
    "in state": "it is in the state folder",
    "credentials": "its name looks like a credential",
}


def list_toolchain_mounts(host: SandboxHost, roots: tuple[str, ...] = ()) -> Iterator[Mount]:
    """Mounts that show the toolchains of the host and cover the credentials in them."""
    for toolchain in TOOLCHAINS:
        for folder in sorted(_list_folders(toolchain, host)):
            parts = toolchain.parts or ("",)
            yield from list_shown_mounts((os.path.join(folder, part) for part in parts), host, roots)
            yield from _cover_parts(folder, toolchain.withheld)
    for folder in _list_environments(host):
        yield from list_shown_mounts((folder, *_find_base_python(folder)), host, roots)
        yield from _cover_parts(folder, _WITHHELD_IN_ENVIRONMENTS)
    yield from list_shown_mounts(host.toolchains, host, roots)


def list_shown_mounts(paths: Iterable[str], host: SandboxHost, roots: tuple[str, ...]) -> Iterator[Mount]:
    """Mounts that show these paths and cover the credentials in them. Paths that lead through a root are left out: an
    agent could choose their target."""
    for path in paths:
        if not os.path.lexists(path) or find_objection(path, host) or any(is_located_in(path, root) for root in roots):
            continue
        for mount in find_mounts(path):
            yield mount
            if mount.kind == "shown":
                yield from _cover_credentials(mount.place)


def list_refused_toolchains(host: SandboxHost) -> tuple[tuple[str, str], ...]:
    missing = {path: "it does not exist" for path in host.toolchains if not os.path.lexists(path)}
    return tuple((path, why) for path in host.toolchains if (why := find_objection(path, host) or missing.get(path)))


def find_objection(path: str, host: SandboxHost) -> str | None:
    if not path.startswith("/"):
        return "it is not an absolute path"
    objection = find_toolchain_objection(path, host.home, host.state)
    return _OBJECTIONS.get(objection) if objection else None


def _list_folders(toolchain: Toolchain, host: SandboxHost) -> set[str]:
    moved = host.environ.get(toolchain.variable, "") if toolchain.variable else ""
    folders = {folder.rstrip("/") for folder in moved.split(os.pathsep)}  # GOPATH may name several
    if toolchain.folder:
        folders.add(os.path.join(host.home, toolchain.folder))
    return {folder for folder in folders if folder.startswith("/")}


def _list_environments(host: SandboxHost) -> Iterator[str]:
    """The environments that are activated by a variable or in PATH."""
    for variable in _ENVIRONMENTS:
        if (folder := host.environ.get(variable, "")).startswith("/"):
            yield folder.rstrip("/")
    for entry in host.environ.get("PATH", "").split(os.pathsep):
        folder = os.path.dirname(entry.rstrip("/"))
        if folder.startswith("/") and os.path.isfile(os.path.join(folder, "pyvenv.cfg")):
            yield folder


def _find_base_python(environment: str) -> Iterator[str]:
    """The installation that an environment was made with. An environment may lie in a root, where an agent can change
    its link. So the target counts only if it is a Python installation."""
    program = os.path.realpath(os.path.join(environment, "bin", "python"))
    folder = os.path.dirname(os.path.dirname(program))
    if os.path.isfile(program) and any(map(os.path.isfile, glob(f"{escape(folder)}/lib*/py*/os.py"))):
        yield folder


def _cover_parts(folder: str, names: Iterable[str]) -> Iterator[Mount]:
    for name in names:
        real = follow_links(os.path.join(folder, name))[1]
        if os.path.lexists(real):
            yield build_empty_mount(real)


def _cover_credentials(folder: str) -> Iterator[Mount]:
    for path in list_folder(folder):
        if is_credential(path):
            yield from () if os.path.islink(path) else (build_empty_mount(path),)
        elif can_hold_credentials(path):
            yield from _cover_credentials(path)
