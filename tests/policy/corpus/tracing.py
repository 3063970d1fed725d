"""Watches commands while they run: what they start, which sockets they open, what they would write."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from .sandbox import Sandbox

_STARTS = "execve,execveat"
_SOCKETS = "socket,connect,bind,listen,sendto,sendmsg"
_OPENS = "open,openat,openat2,creat"
_CHANGES = (
    "mkdir,mkdirat,rmdir,unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,truncate,ftruncate,"
    "chmod,fchmod,fchmodat,chown,fchown,lchown,fchownat,utime,utimes,utimensat,futimesat,mknod,mknodat,setxattr,"
    "fsetxattr,lsetxattr,removexattr,mount,umount2,kill,ptrace,bpf,io_uring_setup"
)
_GIT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "diff.autoRefreshIndex",
    "GIT_CONFIG_VALUE_0": "false",
}
"""`git diff` would bring an outdated index up to date here. Where proven commands run, the workspace is read-only."""
_HERE = Path(__file__).parent
_CALL = re.compile(r"^\d+ +(\w+)\((.*)$")
_NUMBER = re.compile(r'AT_FDCWD, "/tmp/number/(\d+)"')
_FIRST_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE")
# The last are files of their own: tac and sort make some in the private /tmp, npm keeps logs in the private home.
_HARMLESS = re.compile(r'"/dev/(null|tty|stdout|stderr)"|"/tmp/output"|"/tmp/(tac|sort)\w{6}"|"/tmp/home/\.npm[/"]')
# timeout(1) ends what takes too long.
_ENDED = re.compile(r"^-?\d+, SIGKILL(?:\)| <unfinished)")
# glibc asks for the names of users and groups there first; nothing answers.
_NAME_SERVICE = re.compile(r"nscd/socket|^AF_UNIX, SOCK_STREAM\|SOCK_CLOEXEC\|SOCK_NONBLOCK, 0\b")
# pip's HTTP library tries out on a port of the loopback whether this machine has IPv6. node lists its interfaces.
_INTERFACES = re.compile(r'^AF_INET6, SOCK_STREAM\|SOCK_CLOEXEC, IPPROTO_IP\b|sin6_port=htons\(0\),.*"::1"|AF_NETLINK')


class Seen(msgspec.Struct):
    """What one command was seen to do."""

    started: list[str] = []
    """Names of programs, the shell's own first."""
    other: list[str] = []
    """Calls that open sockets or change files, as the trace has them."""


def watch(box: Sandbox, texts: Sequence[str]) -> list[Seen]:
    """Runs commands in one sandbox, one after the other."""
    folder = box.marks
    (folder / "commands").write_bytes(b"".join(text.encode() + b"\0" for text in texts))
    command = [*_prefix(box), *_strace(), "bash", "--noprofile", "--norc", "/tmp/driver.sh"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
    assert done.returncode in {0, 1}, done.stderr.decode(errors="replace")
    trace = (folder / "trace").read_text(errors="replace").splitlines()
    found = _by_command(trace, len(texts))
    assert len(found) == len(texts), "the driver did not come to its end"
    return found


def _prefix(box: Sandbox) -> list[str]:
    given = ("--ro-bind", str(box.marks / "commands"), "/tmp/commands", "--ro-bind", str(_HERE / "driver.sh"))
    return [*box.prefix(), *given, "/tmp/driver.sh", *(word for pair in _GIT.items() for word in ("--setenv", *pair))]


def _strace() -> list[str]:
    traced = f"trace={_STARTS},{_SOCKETS},{_OPENS},{_CHANGES}"
    return [
        "strace",
        "-f",
        "--seccomp-bpf",
        "-q",
        "-s",
        "300",
        "-e",
        traced,
        "-e",
        "signal=none",
        "-o",
        "/tmp/marks/trace",
    ]


def _by_command(trace: Sequence[str], count: int) -> list[Seen]:
    found: list[Seen] = []
    for line in trace:
        call = _CALL.match(line)
        if call is None:
            continue
        number = _NUMBER.match(call[2])
        if number is not None:
            found.append(Seen())
        elif found:
            _note(found[-1], call[1], call[2])
    return found[:count]


def _note(seen: Seen, name: str, rest: str) -> None:
    if name in _STARTS.split(","):
        path = _FIRST_STRING.search(rest)
        seen.started.append(path[1].rsplit("/", 1)[-1] if path else rest)
    elif name in _OPENS.split(","):
        if name == "creat" or (_WRITING.search(rest) and not _HARMLESS.search(rest)):
            seen.other.append(f"{name}({rest}")
    elif not any(pattern.search(rest) for pattern in (_NAME_SERVICE, _INTERFACES, _HARMLESS, _ENDED)):
        seen.other.append(f"{name}({rest}")
