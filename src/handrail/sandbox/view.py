"""The view of a command: the parts of the machine that it sees."""

import _socket
import glob
import os
import re
import sys
import time
from collections.abc import Iterator
from fnmatch import translate
from functools import cache
from itertools import groupby
from typing import NamedTuple

from handrail.policy.git_config import parse_git_config
from handrail.policy.names import is_credential
from handrail.protocol.errors import ToolError
from handrail.sandbox.mounts import (
    Mount,
    build_empty_mount,
    find_mounts,
    follow_links,
    has_content,
    is_shown,
    list_folder,
    list_pins,
    list_shown_mounts,
    list_toolchain_mounts,
    order_mounts,
)
from handrail.sandbox.profile import SandboxHost, SandboxProfile
from handrail.sandbox.proxy.handover import PLACE
from handrail.store.state_dir import write_private
from handrail.workspace.roots import is_inside
from handrail.workspace.search.ripgrep import find_ripgrep

_SECONDS_TO_KEEP = 5.0
"""A toolchain that is installed meanwhile stays invisible as long."""
_MAX_KEPT_VIEWS = 32
_MAX_FILE_BYTES = 1 << 20
_ALSO_TEMPORARY = "/var/tmp"  # noqa: S108  private to the command
_NEEDED = ("/usr", "/etc", "/proc", "/dev", "/tmp")  # noqa: S108  private to the command
"""Folders that a home cannot replace."""
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
_UNIX_SOCKETS = "/proc/net/unix"

SHOWN = (
    # programs, libraries, headers
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/var/usrlocal"),
    *("/nix/store", "/nix/var/nix/profiles", "/gnu/store", "/var/guix/profiles", "/run/current-system"),
    # how programs are set up: names of users, time zone, certificates, where libraries are
    *("/etc", "/var/lib/ca-certificates", "/var/lib/alternatives", "/var/lib/texmf", "/var/lib/gems", "/var/lib/ghc"),
    # which packages there are
    *("/var/lib/dpkg", "/var/lib/rpm"),
    # how many processors there are
    "/sys/devices/system",
)
"""The visible folders of the machine. Not among them: other homes, /mnt, /srv, /run, most of /var and /sys."""

SECRETS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd", "/etc/krb5.keytab"),
    "/etc/ssh/ssh_host_*key",
    *("/etc/ssl/private", "/etc/pki/tls/private", "/etc/letsencrypt", "/etc/credstore*", "/etc/cryptsetup-keys.d"),
    *("/etc/NetworkManager/system-connections", "/etc/wpa_supplicant", "/etc/netplan", "/etc/iwd", "/etc/wireguard"),
    *("/etc/openvpn", "/etc/ipsec.secrets", "/etc/ipsec.d/private", "/etc/swanctl/private", "/etc/ppp/*-secrets"),
    *("/etc/apt/auth.conf", "/etc/apt/auth.conf.d/*", "/etc/cups/ssl", "/etc/cups/passwd*", "/etc/cups/printers.conf*"),
    *("/etc/docker/key.json", "/etc/kubernetes", "/etc/rancher", "/etc/cni/net.d/*kubeconfig", "/etc/vault.d"),
    *("/etc/consul.d", "/etc/nomad.d", "/etc/gitlab*", "/etc/cloudflared", "/etc/rsyncd.secrets"),
    "/etc/davfs2/secrets",
    *("/etc/*credentials*", "/etc/*.secret", "/etc/*.secrets", "/etc/msmtprc", "/etc/exim4/passwd.client", "/etc/sssd"),
    *("/etc/postfix/sasl_passwd*", "/etc/mysql/debian.cnf", "/etc/samba/*passwd*", "/etc/boto.cfg", "/etc/npmrc"),
)
"""Files and folders with keys and passwords. Only the last part of a path may be a glob."""


class BaseView(NamedTuple):
    """The part of a view that all commands with the same roots share for a few seconds."""

    wanted: tuple[Mount, ...]
    """Includes mounts that cover paths which only a root can show."""
    mounts: tuple[Mount, ...]
    ripgrep: str | None
    """The ripgrep that handrail uses for its own searches."""

    def shows(self, path: str) -> bool:
        """Whether every command sees a part of the disk at this path, whatever its roots."""
        return is_shown(self.mounts, path)

    def add_ripgrep(self, environment: dict[str, str]) -> dict[str, str]:
        """Append the folder of ripgrep to PATH, so that a command finds `rg`."""
        folder, path = os.path.dirname(self.ripgrep or ""), environment["PATH"]
        if not folder or folder in path.split(":") or ":" in folder or not self.shows(folder):
            return environment
        return {**environment, "PATH": f"{path}:{folder}"}


class _CachedView(NamedTuple):
    host: SandboxHost
    roots: tuple[str, ...]
    until: float
    view: BaseView


_cached_views: list[_CachedView] = []


def build_base_view(host: SandboxHost, roots: tuple[str, ...] = ()) -> BaseView:
    """The folders, toolchains and credentials of the machine, cached for a few seconds.

    Nothing in the roots counts as a toolchain, nor any target of a link in them: an agent could have put it there.
    """
    now = time.monotonic()
    for cached in _cached_views:
        if cached.host is host and cached.roots == roots and now < cached.until:
            return cached.view
    ripgrep = find_ripgrep(roots)
    wanted = (*_list_base_mounts(host, roots), *list_shown_mounts((ripgrep,) if ripgrep else (), host, roots))
    view = BaseView(wanted, order_mounts(wanted), ripgrep)
    others = [one for one in _cached_views if now < one.until and (one.host is not host or one.roots != roots)]
    _cached_views[:] = [*others[-_MAX_KEPT_VIEWS:], _CachedView(host, roots, now + _SECONDS_TO_KEEP, view)]
    return view


def build_view(profile: SandboxProfile, base: BaseView) -> tuple[Mount, ...]:
    """All mounts of one command, in the order to make them."""
    wanted = (*base.wanted, *_list_root_mounts(profile))
    mounts = order_mounts(wanted)
    if not profile.proxy:
        return mounts
    return order_mounts((*wanted, *_list_interpreter_mounts(mounts), Mount("proxy", PLACE, profile.proxy)))


def _list_base_mounts(host: SandboxHost, roots: tuple[str, ...]) -> Iterator[Mount]:
    for folder in SHOWN:
        yield from (mount for mount in find_mounts(folder) if mount.kind == "link" or has_content(mount.place))
    yield Mount("processes", "/proc")
    yield Mount("devices", "/dev")
    yield Mount("private", "/dev/shm")  # noqa: S108  private to the command
    yield Mount("private", "/tmp")  # noqa: S108  private to the command
    yield Mount("link", _ALSO_TEMPORARY, "/tmp")  # noqa: S108  private to the command
    links, home = follow_links(host.home)
    yield from links
    if not any(is_inside(needed, home) for needed in _NEEDED):
        yield Mount("home", home)
        yield from build_git_identity(host, home)
    yield from list_toolchain_mounts(host, roots)
    yield from list_secret_mounts()
    yield from list_listener_mounts()
    yield Mount("no-folder", os.path.realpath(host.state))


def _list_root_mounts(profile: SandboxProfile) -> Iterator[Mount]:
    if any(is_inside(root, _ALSO_TEMPORARY) for root in profile.roots):
        yield Mount("private", _ALSO_TEMPORARY)  # a root cannot be mounted in a link
    yield from list_pins(profile.read_only_paths, profile.writable)
    yield from (Mount("read-only", root) for root in profile.read_only)
    yield from (Mount("writable", root) for root in profile.writable)
    yield from (Mount("sealed", path) for path in profile.read_only_paths)
    yield from (Mount("no-file", path) for path in profile.hidden_files)
    yield from (Mount("no-folder", path) for path in profile.hidden_folders)


def list_secret_mounts() -> Iterator[Mount]:
    """Mounts that cover the credentials of the machine which this user can open."""
    paths = [path for path in SECRETS if "*" not in path]
    for folder, pattern in _compile_secret_globs().items():
        paths += (path for path in list_folder(folder) if pattern.fullmatch(path))
    paths += (path for path in list_folder("/etc") if is_credential(path))
    yield from (build_empty_mount(path) for path in paths if _can_open(path))


@cache
def _compile_secret_globs() -> dict[str, re.Pattern[str]]:
    """One pattern for each folder."""
    by_folder = groupby(sorted((path for path in SECRETS if "*" in path), key=os.path.dirname), os.path.dirname)
    return {folder: re.compile("|".join(map(translate, paths))) for folder, paths in by_folder}


def _can_open(path: str) -> bool:
    if os.path.islink(path):
        return False  # its target has its own name
    if os.path.isdir(path):
        return os.access(path, os.X_OK) and has_content(path)
    return os.access(path, os.R_OK) and os.path.getsize(path) > 0


def list_listener_mounts() -> Iterator[Mount]:
    """Mounts that cover the listening sockets of the machine: a command can connect to one in a read-only folder."""
    try:
        with open(_UNIX_SOCKETS, encoding="utf-8", errors="surrogateescape") as table:
            lines = table.read().splitlines()[1:]
    except OSError:
        return
    for path in {fields[7] for line in lines if len(fields := line.split(maxsplit=7)) == 8}:
        if path.startswith("/") and os.path.lexists(path):
            yield Mount("no-file", os.path.realpath(path))


# The git identity of the user: name and email. The other git settings stay hidden, since they may hold credentials.


def build_git_identity(host: SandboxHost, home: str) -> list[Mount]:
    """The mount of a .gitconfig with the identity of the user. Empty if there is none."""
    config = host.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    identity = _extract_identity(f"{read_text(f'{config}/git/config')}\n{read_text(f'{home}/.gitconfig')}")
    if not identity:
        return []
    try:
        return [Mount("own-file", f"{home}/.gitconfig", _save_identity(host.state, identity))]
    except OSError:  # git then asks for an identity
        return []


def _extract_identity(text: str) -> str:
    """Included files are ignored. The last value of a setting counts, as in git."""
    values = {
        setting.key: setting.value.replace("\\", "\\\\").replace('"', '\\"')
        for setting in parse_git_config(text).settings
        if (setting.section, setting.part) == ("user", None)
        and setting.key in {"name", "email"}
        and 0 < len(setting.value) <= 200
        and setting.value.isprintable()
    }
    return "".join(f'\t{name} = "{value}"\n' for name, value in sorted(values.items()))


def _save_identity(state: str, identity: str) -> str:
    folder = os.path.join(os.path.realpath(state), "person")
    path, data = os.path.join(folder, "gitconfig"), f"[user]\n{identity}".encode()
    if read_text(path).encode() != data:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        write_private(path, data, ".new")
    return path


def read_text(path: str) -> str:
    """The beginning of a file. Empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_FILE_BYTES)
    except OSError:
        return ""


# The Python that handrail runs in. A command with a proxy sees it, to hand a port to the proxy.


def find_interpreter() -> str:
    """The real path of the interpreter, outside of virtual environments."""
    program = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable or "")
    if "python" not in os.path.basename(program) or not os.path.isfile(program) or not os.path.isfile(os.__file__):
        raise ToolError(
            "UNAVAILABLE",
            "The network cannot be opened to a command: the Python that handrail runs in is not a program with its"
            f" library beside it ({program or 'it cannot tell its path'}). Nothing was run. Run handrail with an"
            " installed Python.",
        )
    return program


def _list_interpreter_mounts(mounts: tuple[Mount, ...]) -> Iterator[Mount]:
    """The interpreter and its library, without installed packages."""
    library = os.path.dirname(os.path.realpath(os.__file__))
    if not is_shown(mounts, library):
        yield Mount("shown", library)
        packages = (f"{library}/{name}" for name in _PACKAGE_FOLDERS)
        yield from (build_empty_mount(path) for path in packages if os.path.isdir(path))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    shared = sorted(glob.glob(f"{glob.escape(sys.base_prefix)}/lib*/libpython{version}*.so*"))
    for path in (find_interpreter(), *shared, *_find_extension_folder()):
        yield from find_mounts(path)


def _find_extension_folder() -> Iterator[str]:
    if file := getattr(_socket, "__file__", None):
        yield os.path.dirname(os.path.realpath(file))
