"""The environment variables of a command."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from handrail.policy.network.allowlist import Allowlist
from handrail.policy.secrets import find_withheld_reason, is_random_value, is_secret_value
from handrail.protocol.errors import ToolError
from handrail.sandbox.mounts import is_within
from handrail.sandbox.profile import SandboxHost, SandboxProfile
from handrail.sandbox.proxy.handover import ADDRESS
from handrail.settings.paths import is_located_in
from handrail.workspace.roots import find_descriptor_path

# § [sandbox.variables.git] What keeps git from starting programs that a repository's own settings name, for
# § commands that only look. External diffs and text converters are disabled by options
# § (`policy/programs/git_history.py`), filters by their names (`workspace/facts.py`). git hands these variables on
# § to the git that it starts in a submodule.

_SETTINGS = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("log.showSignature", "false"),
    # Neither the program that a repository names nor any other checks signatures, whatever format.pretty shows.
    *((f"gpg.{part}program", "/dev/null") for part in ("", "openpgp.", "x509.", "ssh.")),
    ("log.diffMerges", "separate"),  # to merge again would run a merge driver
    # Both start git in a submodule without the options against converters.
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
    ("alias.whatchanged", "log --raw --no-merges"),  # newer versions of git let an alias replace this command
)


def build_git_variables(settings: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    """The variables for git. `settings`: more of them, name and value, as they disable what the workspace defines."""
    return {
        "GIT_OPTIONAL_LOCKS": "0",
        # A partial clone fetches what is missing while one looks, with the programs that its remote names.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_CONFIG_PARAMETERS": " ".join(_quoted(name, value) for name, value in (*_SETTINGS, *settings)),
    }


def _quoted(name: str, value: str) -> str:
    """As `git -c` hands a setting on. A name with `=` in it takes the form that git before 2.31 cannot read."""
    name, value = (text.replace("'", r"'\''") for text in (name, value))
    return f"'{name}'='{value}'" if "=" in name else f"'{name}={value}'"


# § [sandbox.variables.search_path] Where a command's programs are looked for.

Shown = Callable[[str], bool]
"""Whether the command will see an absolute path."""
Usable = Callable[[str], bool]
"""Whether a path is one that programs and libraries may be taken from."""

_LOOK = os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
_SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
_LAST_RESORT = "/usr/bin:/bin"


def build_usable_check(profile: SandboxProfile, shown: Shown) -> Usable:
    """The places that are there, are shown, and that not everybody writes to. To a command that only looks, none that
    leads through a root either: who writes there would choose the program."""
    roots = (*profile.read_only, *profile.writable) if profile.is_read_only else ()

    def usable(path: str) -> bool:
        if not _is_normal(path) or not shown(path):
            return False
        place = _place(path)
        return place is not None and not any(_leads_through(root, path, place) for root in roots)

    return usable


def build_search_path(path: str, usable: Usable) -> str:
    """The usable folders of a PATH, in their order, then the system's own."""
    entries = [entry.rstrip("/") for entry in path.split(":")]
    folders = [entry for entry in dict.fromkeys((*entries, *_SYSTEM)) if usable(entry) and os.path.isdir(entry)]
    return ":".join(folders) or _LAST_RESORT


def _is_normal(path: str) -> bool:
    return path.startswith("/") and ":" not in path and path.isprintable() and os.path.normpath(path) == path != "/"


def _place(path: str) -> str | None:
    """Where a path leads; None where that is nothing, or everybody may write there."""
    try:
        descriptor = os.open(path, _LOOK)
    except OSError:
        return None
    try:
        return None if os.fstat(descriptor).st_mode & stat.S_IWOTH else find_descriptor_path(descriptor)
    finally:
        os.close(descriptor)


def _leads_through(root: str, path: str, place: str) -> bool:
    if path == place:  # no link is on the way
        return is_within(path, root)
    return is_located_in(path, root)


# § [sandbox.variables.toolchains] Variables that say where toolchains are. They are passed on where a command sees
# § the place.

PLACES = frozenset(
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
LISTS = frozenset({"GOPATH", "GEM_PATH", "JULIA_DEPOT_PATH", "PKG_CONFIG_PATH", "MANPATH", "INFOPATH"})
"""Those that name several places, with colons between."""


# § [sandbox.variables.environment] The environment of a command: put together anew, never the runtime's own with
# § things taken out. Whatever the runtime was started with, a command gets the variables that are made here, those
# § of toolchains whose places it sees, and those that a person listed; and none of these where its value looks like
# § a secret.

_ALWAYS = {
    "TERM": "dumb",
    "TMPDIR": "/tmp",  # noqa: S108  the sandbox's own
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
_BUILDING = {"LSAN_OPTIONS": "detect_leaks=0"}
"""Programs that look for their leaks trace themselves, which no command may: they would end with an error."""
# No NO_COLOR: node warns about it in every process whose parent sets FORCE_COLOR, as runners of tests do.
_LANGUAGES = re.compile(r"(?:C|POSIX|(?:C|[a-z]{2,3}(?:_[A-Z]{2})?)\.(?:UTF-8|utf-?8)(?:@[a-z]{1,12})?)")
_LANGUAGE_NAMES = ("LANG", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME")
_ZONE = re.compile(r"[A-Za-z_]{1,20}(?:[+-]?[0-9]{1,2}(?:[A-Z]{3,4})?)?(?:/[A-Za-z_-]{1,20}(?:[+-]?[0-9]{1,2})?){0,2}")
_ACCOUNT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
CHOSEN_FROM = PLACES | LISTS | {*_LANGUAGE_NAMES, "TZ", "PATH", "HOME", "USER"}
"""The variables of the runtime that a command's own are chosen from, besides those that a person listed."""
_SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh")
_MAX_VALUE_CHARS = 8192
"""Characters of one value; with more, programs may not start at all."""


def build_environment(profile: SandboxProfile, host: SandboxHost, shown: Shown) -> dict[str, str]:
    """The variables of a command; `shown` says whether it will see an absolute path."""
    usable = build_usable_check(profile, shown)
    return {
        **_ALWAYS,
        "PATH": build_search_path(host.environ.get("PATH", ""), usable),
        "HOME": host.home,
        "SHELL": next(filter(os.path.exists, _SHELLS), _SHELLS[-1]),
        **_language(host.environ),
        **({} if profile.is_read_only else _BUILDING | _account(host.environ)),
        **dict(_toolchains(host.environ, usable)),
        **dict(_listed(host)),
        **(build_git_variables(profile.git_settings) if profile.is_read_only else {}),
        **(_proxy(profile) if profile.proxy else {}),
    }


def find_withheld_variables(host: SandboxHost) -> dict[str, str]:
    """The variables that a person listed, are there, and are not passed on: for each, why, in words."""
    reasons = {name: _why_not(name, host.environ[name]) for name in host.variables if name in host.environ}
    return {name: reason for name, reason in reasons.items() if reason}


def _proxy(profile: SandboxProfile) -> dict[str, str]:

    return build_proxy_variables(profile.listed)


def _listed(host: SandboxHost) -> Iterator[tuple[str, str]]:
    for name in host.variables:
        if name in host.environ and not _why_not(name, host.environ[name]):
            yield name, host.environ[name]


def _why_not(name: str, value: str) -> str | None:
    if reason := find_withheld_reason(name):
        return reason
    if not _is_plain(value):
        return "is longer than a variable should be, or holds what is no text"
    return "holds what looks like a secret" if is_secret_value(value) or is_random_value(value) else None


def _is_plain(value: str) -> bool:
    """No line breaks, nothing unseen, no function for a shell."""
    return value.isprintable() and len(value) <= _MAX_VALUE_CHARS and not value.lstrip().startswith("()")


def _language(environ: Mapping[str, str]) -> dict[str, str]:
    """The person's language where its text is UTF-8; everything that is printed is read as that."""
    found = {name: environ[name] for name in _LANGUAGE_NAMES if _LANGUAGES.fullmatch(environ.get(name, ""))}
    if not found.keys() & {"LANG", "LC_ALL"}:
        found["LANG"] = "C.UTF-8"
    if _ZONE.fullmatch(environ.get("TZ", "")):
        found["TZ"] = environ["TZ"]
    return found


def _account(environ: Mapping[str, str]) -> dict[str, str]:
    """Who runs it, since some builds fail without. It tells no more than the home folder's name does; but what only
    looks needs it for nothing."""
    name = _name_on_record() or environ.get("USER", "")
    return {"USER": name, "LOGNAME": name} if _ACCOUNT.fullmatch(name) and not is_secret_value(name) else {}


def _name_on_record() -> str:
    import pwd  # noqa: PLC0415  few need it

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return ""


def _toolchains(environ: Mapping[str, str], usable: Usable) -> Iterator[tuple[str, str]]:
    for name in PLACES & environ.keys():
        if _is_place(environ[name], usable):
            yield name, environ[name]
    for name in LISTS & environ.keys():
        if places := [place for place in environ[name].split(":") if _is_place(place, usable)]:
            yield name, ":".join(places)


def _is_place(value: str, usable: Callable[[str], bool]) -> bool:
    return _is_plain(value) and not is_secret_value(value) and usable(value)


# § [sandbox.variables.approved] The variables that a person's yes to a command is for, and a host on which a
# § command gets just these again.


def list_approved_variables(host: SandboxHost, roots: tuple[str, ...]) -> dict[str, str]:
    """The variables that a person may approve a command with.

    They are the same in every tier: what a tier hides or adds is no news to who was told the tier.
    """
    profile = SandboxProfile(origin="approved", cwd="/", read_only=(), writable=roots)
    return build_environment(profile, host, os.path.exists)


def build_approved_host(host: SandboxHost, variables: Mapping[str, str]) -> SandboxHost:
    """The host with these in the place of what a command's variables would be chosen from here. They are chosen from
    as any others: what no command may get, it does not get by this either."""
    chosen_from = CHOSEN_FROM.union(host.variables)
    rest = {name: value for name, value in host.environ.items() if name not in chosen_from}
    return msgspec.structs.replace(host, home=variables.get("HOME", host.home), environ={**rest, **variables})


# § [sandbox.variables.proxy] What tells programs of the proxy: the variables that most of them look at.


def build_proxy_variables(listed: Iterable[str]) -> dict[str, str]:
    """Variables of a command that has a proxy. What it starts on its own loopback addresses is reached without; where
    one of these is listed, it means this machine's, and only by `localhost` is its own reached."""
    without = ",".join(Allowlist.from_entries(listed).private_loopback())
    names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
    return {
        **dict.fromkeys(names, ADDRESS),
        "no_proxy": without,
        "NO_PROXY": without,
        "NODE_USE_ENV_PROXY": "1",  # without it, Node's own fetch looks at none of these
    }


# § [sandbox.bash] The shell that runs commands: where it is.

_PLACES = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")


def find_bash(path: str, usable: Callable[[str], bool]) -> str:
    """The system's own before others on a PATH; ToolError where there is none that is usable."""
    on_path = (os.path.join(folder, "bash") for folder in path.split(os.pathsep))
    for program in (*_PLACES, *on_path):
        if os.path.isabs(program) and os.path.isfile(program) and os.access(program, os.X_OK) and usable(program):
            return program
    raise ToolError(
        "UNAVAILABLE", "There is no bash in /bin, in /usr/bin or on PATH, so no command can be run. Install bash."
    )


# § [sandbox.text] The text of a command, as a shell is given it.

MAX_ARGUMENT_BYTES = (1 << 17) - 1
"""Bytes that the kernel takes as one argument."""


def check_text(text: str) -> None:
    """Refuses a text that cannot be handed to a shell."""
    if "\0" in text:
        raise ToolError("INVALID_ARGUMENT", "The command has a NUL character in it. Leave it out.")
    try:
        size = len(os.fsencode(text))
    except UnicodeEncodeError:
        raise ToolError("INVALID_ARGUMENT", "The command has half a character in it, which no text has.") from None
    if size > MAX_ARGUMENT_BYTES:
        raise ToolError(
            "LIMIT_EXCEEDED",
            f"The command has {size:,} bytes, and a shell takes {MAX_ARGUMENT_BYTES:,}."
            " Write it to a file and run that.",
        )
