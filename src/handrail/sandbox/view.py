"""The part of the machine that a command sees."""

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
    is_within,
    list_folder,
    list_pins,
    order_mounts,
)
from handrail.sandbox.profile import SandboxHost, SandboxProfile
from handrail.sandbox.toolchains import list_shown_mounts, list_toolchain_mounts
from handrail.workspace.search.ripgrep import find_ripgrep

# § [sandbox.view.git_person] Who commits: the person's name and address, and nothing else of their git settings,
# § which may hold credentials.

_MAX_FILE_BYTES = 1 << 20


def build_git_identity(host: SandboxHost, home: str) -> list[Mount]:
    """The file that git finds in the home in the place of the person's own; none where that tells nobody."""
    told = _told(_settings(host, home))
    if not told:
        return []
    try:
        return [Mount("own-file", f"{home}/.gitconfig", _written(host.state, told))]
    except OSError:  # git then asks who it is, as for every new person
        return []


def _settings(host: SandboxHost, home: str) -> str:
    other = host.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    return "\n".join(_text(path) for path in (f"{other}/git/config", f"{home}/.gitconfig"))


def _told(settings: str) -> str:
    """The last of each counts, as for git itself; what is included from elsewhere is not looked at."""
    found = {
        one.key: one.value.replace("\\", "\\\\").replace('"', '\\"')
        for one in parse_git_config(settings).settings
        if (one.section, one.part) == ("user", None) and one.key in {"name", "email"} and _is_plain(one.value)
    }
    return "".join(f'\t{name} = "{value}"\n' for name, value in sorted(found.items()))


def _is_plain(value: str) -> bool:
    return 0 < len(value) <= 200 and value.isprintable()


def _written(state: str, told: str) -> str:
    folder = os.path.join(os.path.realpath(state), "person")
    path, data = os.path.join(folder, "gitconfig"), f"[user]\n{told}".encode()
    if _text(path).encode() != data:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        new = f"{path}.{os.urandom(6).hex()}"
        with open(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o400), "wb") as file:
            file.write(data)
        os.replace(new, path)
    return path


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_FILE_BYTES)
    except OSError:
        return ""


# § [sandbox.view.listeners] Sockets that somebody on the machine listens at: a read-only folder does not keep a
# § command from connecting.

_TABLE = "/proc/net/unix"


def list_listener_mounts() -> Iterator[Mount]:
    """Something empty over each of them; those that lie where nothing is shown need none."""
    try:
        with open(_TABLE, encoding="utf-8", errors="surrogateescape") as table:
            lines = table.read().splitlines()[1:]
    except OSError:
        return
    for path in {fields[7] for line in lines if len(fields := line.split(maxsplit=7)) == 8}:
        if path.startswith("/") and os.path.lexists(path):
            yield Mount("no-file", os.path.realpath(path))


# § [sandbox.view.system] What every command sees of the machine, and the credentials in it that none does.

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
"""What is not here cannot be seen: other homes, /mnt, /srv, /run with its sockets, most of /var and /sys."""

SECRETS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd", "/etc/krb5.keytab"),
    "/etc/ssh/ssh_host_*key",
    *("/etc/ssl/private", "/etc/pki/tls/private", "/etc/letsencrypt", "/etc/credstore*", "/etc/cryptsetup-keys.d"),
    *("/etc/NetworkManager/system-connections", "/etc/wpa_supplicant", "/etc/netplan", "/etc/iwd", "/etc/wireguard"),
    *("/etc/openvpn", "/etc/ipsec.secrets", "/etc/ipsec.d/private", "/etc/swanctl/private", "/etc/ppp/*-secrets"),
    *("/etc/apt/auth.conf", "/etc/apt/auth.conf.d/*", "/etc/cups/ssl", "/etc/cups/passwd*", "/etc/cups/printers.conf*"),
    *("/etc/docker/key.json", "/etc/kubernetes", "/etc/rancher", "/etc/cni/net.d/*kubeconfig", "/etc/vault.d"),
    *(
        "/etc/consul.d",
        "/etc/nomad.d",
        "/etc/gitlab*",
        "/etc/cloudflared",
        "/etc/rsyncd.secrets",
        "/etc/davfs2/secrets",
    ),
    *("/etc/*credentials*", "/etc/*.secret", "/etc/*.secrets", "/etc/msmtprc", "/etc/exim4/passwd.client", "/etc/sssd"),
    *("/etc/postfix/sasl_passwd*", "/etc/mysql/debian.cnf", "/etc/samba/*passwd*", "/etc/boto.cfg", "/etc/npmrc"),
)
"""Files and folders with keys and passwords, as globs whose folder is fixed."""


def list_system_mounts() -> Iterator[Mount]:
    """The machine's folders; one that is empty is not worth a mount."""
    for folder in SHOWN:
        for mount in find_mounts(folder):
            if mount.kind == "link" or has_content(mount.place):
                yield mount


def list_secret_mounts() -> Iterator[Mount]:
    """What lies over the machine's credentials: those that this user can open. The rest is guarded anyway."""
    paths = [path for path in SECRETS if "*" not in path]
    for folder, names in _patterns().items():
        paths += (path for path in list_folder(folder) if names.fullmatch(path))
    paths += (path for path in list_folder("/etc") if is_credential(path))
    yield from (build_empty_mount(path) for path in paths if _is_open(path))


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """For each folder, what the paths of credentials in it look like."""
    by_folder = groupby(sorted((glob for glob in SECRETS if "*" in glob), key=_folder), _folder)
    return {folder: re.compile("|".join(map(translate, those))) for folder, those in by_folder}


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _is_open(path: str) -> bool:
    if os.path.islink(path):
        return False  # what it leads to has its own name
    if os.path.isdir(path):
        return os.access(path, os.X_OK) and has_content(path)
    return os.access(path, os.R_OK) and os.path.getsize(path) > 0


# § [sandbox.view.view] What a command sees of the disk: the machine's programs, its roots, and an empty home with
# § the toolchains in it.

_SECONDS_TO_KEEP = 5.0
"""How long a toolchain that somebody installs meanwhile stays unseen."""
_MAX_KEPT_VIEWS = 32
_ALSO_TEMPORARY = "/var/tmp"  # noqa: S108  of the command alone
_NEEDED = ("/usr", "/etc", "/proc", "/dev", "/tmp")  # noqa: S108  of the command alone
"""What a home cannot take the place of."""


class BaseView(NamedTuple):
    """What is the same for all commands for a while: everything but the roots and what is in them."""

    wanted: tuple[Mount, ...]
    """Also what lies over things that are not shown unless a root shows them."""
    mounts: tuple[Mount, ...]
    ripgrep: str | None
    """The ripgrep that handrail itself searches with."""

    def with_ripgrep(self, environment: dict[str, str]) -> dict[str, str]:
        """A command's variables: the last folder of its PATH is that of handrail's ripgrep, so that `rg` is found."""
        folder, path = os.path.dirname(self.ripgrep or ""), environment["PATH"]
        if not folder or folder in path.split(":") or ":" in folder or not self.shows(folder):
            return environment
        return {**environment, "PATH": f"{path}:{folder}"}

    def shows(self, path: str) -> bool:
        """Whether a command sees something of the disk at this path, whatever its roots are."""
        return is_shown(self.mounts, path)


class _CachedView(NamedTuple):
    host: SandboxHost
    roots: tuple[str, ...]
    until: float
    found: BaseView


_latest: list[_CachedView] = []


def build_base_view(host: SandboxHost, roots: tuple[str, ...] = ()) -> BaseView:
    """Which of the machine's folders, toolchains and credentials there are; looked at anew every few seconds. What lies
    in the roots, and what links in them lead to, is not among them: who writes there would choose it."""
    now = time.monotonic()
    for look in _latest:
        if look.host is host and look.roots == roots and now < look.until:
            return look.found
    ripgrep = find_ripgrep(roots)
    wanted = (*_around(host, roots), *list_shown_mounts((ripgrep,) if ripgrep else (), host, roots))
    found = BaseView(wanted, order_mounts(wanted), ripgrep)
    others = [look for look in _latest if now < look.until and (look.host is not host or look.roots != roots)]
    _latest[:] = [*others[-_MAX_KEPT_VIEWS:], _CachedView(host, roots, now + _SECONDS_TO_KEEP, found)]
    return found


def build_view(profile: SandboxProfile, around: BaseView) -> tuple[Mount, ...]:
    """The whole view of one command, in the order to be made in."""
    wanted = (*around.wanted, *_roots(profile), *_parts_of_roots(profile))
    return order_mounts(wanted) if not profile.proxy else _with_proxy(profile.proxy, wanted)


def _around(host: SandboxHost, roots: tuple[str, ...]) -> Iterator[Mount]:
    yield from list_system_mounts()
    yield Mount("processes", "/proc")
    yield Mount("devices", "/dev")
    yield Mount("private", "/dev/shm")  # noqa: S108  of the command alone
    yield Mount("private", "/tmp")  # noqa: S108  of the command alone
    yield Mount("link", _ALSO_TEMPORARY, "/tmp")  # noqa: S108  as above
    yield from _home(host)
    yield from list_toolchain_mounts(host, roots)
    yield from list_secret_mounts()
    yield from list_listener_mounts()
    yield Mount("no-folder", os.path.realpath(host.state))


def _home(host: SandboxHost) -> Iterator[Mount]:
    links, home = follow_links(host.home)
    yield from links
    if not any(is_within(needed, home) for needed in _NEEDED):
        yield Mount("home", home)
        yield from build_git_identity(host, home)


def _with_proxy(socket: str, wanted: tuple[Mount, ...]) -> tuple[Mount, ...]:
    from handrail.sandbox.proxy.handover import PLACE  # noqa: PLC0415  few commands have one

    return order_mounts((*wanted, *list_interpreter_mounts(order_mounts(wanted)), Mount("proxy", PLACE, socket)))


def _roots(profile: SandboxProfile) -> Iterator[Mount]:
    if any(is_within(root, _ALSO_TEMPORARY) for root in profile.roots):
        yield Mount("private", _ALSO_TEMPORARY)  # nothing can be put into a link
    yield from list_pins(profile.read_only_paths, profile.writable)
    for root in profile.read_only:
        yield Mount("read-only", root)
    for root in profile.writable:
        yield Mount("writable", root)


def _parts_of_roots(profile: SandboxProfile) -> Iterator[Mount]:
    for path in profile.read_only_paths:
        yield Mount("sealed", path)
    for path in profile.hidden_files:
        yield Mount("no-file", path)
    for path in profile.hidden_folders:
        yield Mount("no-folder", path)


# § [sandbox.view.interpreter] The Python that handrail runs in, as a command is shown it that has a proxy: it hands
# § the proxy a port, once.

_WITHHELD = ("site-packages", "dist-packages")


def find_interpreter() -> str:
    """Where it is, past environments and links; ToolError where it cannot be told."""
    program = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable or "")
    if "python" not in os.path.basename(program) or not os.path.isfile(program) or not os.path.isfile(os.__file__):
        raise ToolError(
            "UNAVAILABLE",
            "The network cannot be opened to a command: the Python that handrail runs in is not a program with its"
            f" library beside it ({program or 'it cannot tell its path'}). Nothing was run. Run handrail with an"
            " installed Python.",
        )
    return program


def list_interpreter_mounts(around: tuple[Mount, ...]) -> Iterator[Mount]:
    """What shows it where it lies in a folder that is not shown: the program and its library, without packages."""
    library = os.path.dirname(os.path.realpath(os.__file__))
    if not is_shown(around, library):
        yield Mount("shown", library)
        yield from (build_empty_mount(path) for name in _WITHHELD if os.path.isdir(path := f"{library}/{name}"))
    for path in (find_interpreter(), *_shared_libraries(), *_folder_of_extensions()):
        yield from find_mounts(path)


def _shared_libraries() -> Iterator[str]:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    yield from sorted(glob.glob(f"{glob.escape(sys.base_prefix)}/lib*/libpython{version}*.so*"))


def _folder_of_extensions() -> Iterator[str]:
    import _socket  # noqa: PLC0415  only to see where it is

    if file := getattr(_socket, "__file__", None):
        yield os.path.dirname(os.path.realpath(file))
