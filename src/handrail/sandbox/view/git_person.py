"""Who commits: the person's name and address, and nothing else of their git settings, which may hold credentials."""

import os

from handrail.policy.git_config import parse_git_config
from handrail.sandbox.host import SandboxHost
from handrail.sandbox.view.mounts import Mount

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
