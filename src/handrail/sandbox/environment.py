"""The environment of a command: its variables, its shell.

The environment is built anew, never copied. A command gets fixed variables, those of visible toolchains, and those that
the user listed. A value that looks like a secret is left out.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from handrail.policy.network.allowlist import Allowlist
from handrail.policy.secrets import find_withheld_reason, is_random_value, is_secret_value
from handrail.protocol.errors import ToolError
from handrail.sandbox.profile import SandboxHost, SandboxProfile
from handrail.sandbox.proxy.handover import PORT, find_proxy_host
from handrail.settings.paths import is_located_in
from handrail.workspace.resolve import closing_descriptor
from handrail.workspace.roots import find_descriptor_path, is_inside

PathCheck = Callable[[str], bool]

_FIXED = {
    "TERM": "dumb",
    "TMPDIR": "/tmp",  # noqa: S108  private to the command
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    # No NO_COLOR: node warns about it in every process whose parent sets FORCE_COLOR, as test runners do.
}
_LEAK_CHECK_OFF = {"LSAN_OPTIONS": "detect_leaks=0"}
"""A leak check traces its own process, which the sandbox forbids: the program would fail."""
_LANGUAGES = re.compile(r"(?:C|POSIX|(?:C|[a-z]{2,3}(?:_[A-Z]{2})?)\.(?:UTF-8|utf-?8)(?:@[a-z]{1,12})?)")
_LANGUAGE_NAMES = ("LANG", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME")
_ZONE = re.compile(r"[A-Za-z_]{1,20}(?:[+-]?[0-9]{1,2}(?:[A-Z]{3,4})?)?(?:/[A-Za-z_-]{1,20}(?:[+-]?[0-9]{1,2})?){0,2}")
_ACCOUNT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
_MAX_VALUE_CHARS = 8192
"""Programs may not start with longer values."""
MAX_ARGUMENT_BYTES = (1 << 17) - 1
"""The kernel's limit for one argument."""
_SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh")
_SYSTEM_BASHES = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")
_SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
_LAST_RESORT = "/usr/bin:/bin"
_OPEN_PATH = os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
FOLDER_VARIABLES = frozenset(
    {
        # Python
        "PYENV_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_EXE", "CONDA_PYTHON_EXE", "MAMBA_ROOT_PREFIX", "MAMBA_EXE",
        "UV_PYTHON_INSTALL_DIR", "UV_TOOL_DIR", "PIPX_HOME", "POETRY_HOME", "WORKON_HOME",
        # JavaScript
        "NVM_DIR", "NVM_BIN", "NVM_INC", "FNM_DIR", "FNM_MULTISHELL_PATH", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL",
        "DENO_INSTALL", "DENO_INSTALL_ROOT", "N_PREFIX", "COREPACK_HOME",
        # Rust, Go, C
        "CARGO_HOME", "RUSTUP_HOME", "GOROOT", "GOBIN", "CUDA_HOME", "CUDA_PATH", "EMSDK", "VCPKG_ROOT",
        # JVM
        "JAVA_HOME", "JDK_HOME", "JRE_HOME", "MAVEN_HOME", "M2_HOME", "GRADLE_HOME", "ANT_HOME", "SDKMAN_DIR",
        "KOTLIN_HOME", "SCALA_HOME", "GROOVY_HOME", "ANDROID_HOME", "ANDROID_SDK_ROOT", "ANDROID_NDK_HOME",
        # others
        "GEM_HOME", "RBENV_ROOT", "RVM_PATH", "DOTNET_ROOT", "FLUTTER_ROOT", "DART_SDK", "GHCUP_INSTALL_BASE_PREFIX",
        "STACK_ROOT", "CABAL_DIR", "OPAMROOT", "OPAM_SWITCH_PREFIX", "MIX_HOME", "HEX_HOME", "ELIXIR_HOME", "R_HOME",
        "PLENV_ROOT", "PHPENV_ROOT", "COMPOSER_HOME", "SWIFTLY_HOME_DIR",
        # several at once
        "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "HOMEBREW_PREFIX", "HOMEBREW_CELLAR", "HOMEBREW_REPOSITORY",
    }
)  # fmt: skip
"""Toolchain variables that name a folder."""
PATH_VARIABLES = frozenset({"GOPATH", "GEM_PATH", "JULIA_DEPOT_PATH", "PKG_CONFIG_PATH", "MANPATH", "INFOPATH"})
"""Toolchain variables that name several folders, separated by colons."""
_CHOSEN_FROM = FOLDER_VARIABLES | PATH_VARIABLES | {*_LANGUAGE_NAMES, "TZ", "PATH", "HOME", "USER"}
"""The variables of handrail that those of a command are chosen from, besides those that the user listed."""

# These settings keep git from starting programs that a repository names, in read-only commands. git passes them on to
# the git that it starts in a submodule. Options disable external diffs and text converters
# (`policy/programs/git_history.py`), and names disable filters (`workspace/facts.py`).
_GIT_SETTINGS = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("log.showSignature", "false"),
    # No program checks signatures, not even one that a repository names.
    *((f"gpg.{part}program", "/dev/null") for part in ("", "openpgp.", "x509.", "ssh.")),
    ("log.diffMerges", "separate"),  # a remerge would run a merge driver
    # Both would start git in a submodule without the options against converters.
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
    ("alias.whatchanged", "log --raw --no-merges"),  # newer git lets an alias replace this command
)


def build_environment(profile: SandboxProfile, host: SandboxHost, is_visible: PathCheck) -> dict[str, str]:
    """The variables of a command. `is_visible` tells whether the command sees an absolute path."""
    is_usable = _build_usable_check(profile, is_visible)
    return {
        **_FIXED,
        "PATH": _build_search_path(host.environ.get("PATH", ""), is_usable),
        "HOME": host.home,
        "SHELL": next(filter(os.path.exists, _SHELLS), _SHELLS[-1]),
        **_choose_language(host.environ),
        **({} if profile.is_read_only else _LEAK_CHECK_OFF | _find_account(host.environ)),
        **dict(_choose_toolchains(host.environ, is_usable)),
        **{name: value for name, value in _list_variables(host) if not _find_objection(name, value)},
        **(build_git_variables(profile.git_settings) if profile.is_read_only else {}),
        **(_build_proxy_variables(profile) if profile.proxy else {}),
    }


def find_withheld_variables(host: SandboxHost) -> dict[str, str]:
    """The listed variables that are not passed on, each with the reason."""
    return {name: reason for name, value in _list_variables(host) if (reason := _find_objection(name, value))}


def list_approved_variables(host: SandboxHost, roots: tuple[str, ...]) -> dict[str, str]:
    """The variables that an approval covers. They are the same in every tier."""
    profile = SandboxProfile(origin="approved", cwd="/", read_only=(), writable=roots)
    return build_environment(profile, host, os.path.exists)


def build_approved_host(host: SandboxHost, variables: Mapping[str, str]) -> SandboxHost:
    """The host with approved variables in place of its own. What no command may get is left out of these too."""
    chosen_from = _CHOSEN_FROM.union(host.variables)
    rest = {name: value for name, value in host.environ.items() if name not in chosen_from}
    return msgspec.structs.replace(host, home=variables.get("HOME", host.home), environ={**rest, **variables})


def find_bash(path: str, is_usable: PathCheck) -> str:
    """The bash of the system, else one on PATH."""
    on_path = (os.path.join(folder, "bash") for folder in path.split(os.pathsep))
    for program in (*_SYSTEM_BASHES, *on_path):
        if os.path.isabs(program) and os.path.isfile(program) and os.access(program, os.X_OK) and is_usable(program):
            return program
    raise ToolError(
        "UNAVAILABLE", "There is no bash in /bin, in /usr/bin or on PATH, so no command can be run. Install bash."
    )


def check_text(text: str) -> None:
    """Refuse a command that cannot be an argument of a shell."""
    if "\0" in text:
        raise ToolError("INVALID_ARGUMENT", "The command has a NUL character in it. Leave it out.")
    try:
        size = len(os.fsencode(text))
    except UnicodeEncodeError:
        raise ToolError("INVALID_ARGUMENT", "The command has an incomplete character.") from None
    if size > MAX_ARGUMENT_BYTES:
        raise ToolError(
            "LIMIT_EXCEEDED",
            f"The command has {size:,} bytes, and a shell takes {MAX_ARGUMENT_BYTES:,}."
            " Write it to a file and run that.",
        )


def _list_variables(host: SandboxHost) -> Iterator[tuple[str, str]]:
    """The variables that the user listed and that exist."""
    return ((name, host.environ[name]) for name in host.variables if name in host.environ)


def _find_objection(name: str, value: str) -> str | None:
    if reason := find_withheld_reason(name):
        return reason
    if not _is_plain(value):
        return "is too long, or is not text"
    return "looks like a secret" if is_secret_value(value) or is_random_value(value) else None


def _is_plain(value: str) -> bool:
    """No line breaks, no invisible characters, no function of a shell."""
    return value.isprintable() and len(value) <= _MAX_VALUE_CHARS and not value.lstrip().startswith("()")


def _choose_language(environ: Mapping[str, str]) -> dict[str, str]:
    """The user's time zone, and the language if it is UTF-8: handrail reads all output as UTF-8."""
    chosen = {name: environ[name] for name in _LANGUAGE_NAMES if _LANGUAGES.fullmatch(environ.get(name, ""))}
    if not chosen.keys() & {"LANG", "LC_ALL"}:
        chosen["LANG"] = "C.UTF-8"
    if _ZONE.fullmatch(environ.get("TZ", "")):
        chosen["TZ"] = environ["TZ"]
    return chosen


def _find_account(environ: Mapping[str, str]) -> dict[str, str]:
    """The user name, since some builds fail without it."""
    import pwd  # noqa: PLC0415  read-only commands do not need it

    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        name = ""
    name = name or environ.get("USER", "")
    return {"USER": name, "LOGNAME": name} if _ACCOUNT.fullmatch(name) and not is_secret_value(name) else {}


def _choose_toolchains(environ: Mapping[str, str], is_usable: PathCheck) -> Iterator[tuple[str, str]]:
    def is_folder(value: str) -> bool:
        return _is_plain(value) and not is_secret_value(value) and is_usable(value)

    for name in FOLDER_VARIABLES & environ.keys():
        if is_folder(environ[name]):
            yield name, environ[name]
    for name in PATH_VARIABLES & environ.keys():
        if folders := list(filter(is_folder, environ[name].split(":"))):
            yield name, ":".join(folders)


def build_git_variables(settings: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    return {
        "GIT_OPTIONAL_LOCKS": "0",
        # In a partial clone, reading would fetch objects with the programs that a remote names.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_CONFIG_PARAMETERS": " ".join(_quote_git(name, value) for name, value in (*_GIT_SETTINGS, *settings)),
    }


def _quote_git(name: str, value: str) -> str:
    """The format of `git -c`. git before 2.31 cannot read the form for names with `=`."""
    name, value = (text.replace("'", r"'\''") for text in (name, value))
    return f"'{name}'='{value}'" if "=" in name else f"'{name}={value}'"


def _build_proxy_variables(profile: SandboxProfile) -> dict[str, str]:
    """Variables that send programs to the proxy, except for loopback addresses that are not listed. A listed one is
    the machine's, and the command reaches its own only as `localhost`."""
    direct = ",".join(Allowlist.from_entries(profile.listed).private_loopback())
    address = f"http://{find_proxy_host(profile.proxy, shared=profile.joined)}:{PORT}"
    return {
        **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), address),
        "no_proxy": direct,
        "NO_PROXY": direct,
        "NODE_USE_ENV_PROXY": "1",  # otherwise Node's own fetch ignores the others
    }


def _build_usable_check(profile: SandboxProfile, is_visible: PathCheck) -> PathCheck:
    """Check for folders that programs may be taken from: visible, and not writable by everybody.

    For a read-only command, a path through a root is unusable too: an agent could choose the program.
    """
    roots = profile.roots if profile.is_read_only else ()

    def is_usable(path: str) -> bool:
        if not _is_normal(path) or not is_visible(path):
            return False
        target = _find_target(path)
        return target is not None and not any(
            is_inside(path, root) if path == target else is_located_in(path, root) for root in roots
        )

    return is_usable


def _build_search_path(path: str, is_usable: PathCheck) -> str:
    """The usable folders of PATH, then those of the system."""
    entries = dict.fromkeys((*(entry.rstrip("/") for entry in path.split(":")), *_SYSTEM_FOLDERS))
    return ":".join(entry for entry in entries if is_usable(entry) and os.path.isdir(entry)) or _LAST_RESORT


def _is_normal(path: str) -> bool:
    return path.startswith("/") and ":" not in path and path.isprintable() and os.path.normpath(path) == path != "/"


def _find_target(path: str) -> str | None:
    """The real path. None if it does not exist, or everybody may write to it."""
    try:
        descriptor = os.open(path, _OPEN_PATH)
    except OSError:
        return None
    with closing_descriptor(descriptor):
        return None if os.fstat(descriptor).st_mode & stat.S_IWOTH else find_descriptor_path(descriptor)
