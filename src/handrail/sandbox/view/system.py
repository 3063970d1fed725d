"""What every command sees of the machine, and the credentials in it that none does."""

import os
import re
from collections.abc import Iterator
from fnmatch import translate
from functools import cache
from itertools import groupby

from handrail.policy.names import is_credential
from handrail.sandbox.view.finding import build_empty_mount, find_mounts, has_content, list_folder
from handrail.sandbox.view.mounts import Mount

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
