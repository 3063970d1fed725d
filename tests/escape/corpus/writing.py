"""Changes outside the roots: of what files hold, of names, and of everything else that files have."""

from textwrap import dedent

from tests.escape.case import Case

_CONTENT = {
    "overwrite": ("writes into a file that is there", 'overwrite(f"{AT}/canary.txt")'),
    "append": ("appends to a file", 'open(f"{AT}/canary.txt", "a").write("ESCAPED")'),
    "truncate": ("cuts a file off", 'os.truncate(f"{AT}/canary.txt", 0)'),
    "create": ("makes a new file", 'create(f"{AT}/new.txt")'),
    "make-folder": ("makes a folder", 'os.mkdir(f"{AT}/new")'),
    "make-link": ("makes a symbolic link", 'os.symlink("/", f"{AT}/new")'),
    "make-pipe": ("makes a named pipe", 'os.mkfifo(f"{AT}/new")'),
    "make-socket": ("binds a socket to a name", 'socket.socket(socket.AF_UNIX).bind(f"{AT}/new")'),
    "unlink": ("deletes a file", 'os.unlink(f"{AT}/canary.txt")'),
    "remove-folder": ("deletes a folder with all in it", 'shutil.rmtree(f"{AT}/folder")'),
    "rename": ("gives a file another name", 'os.rename(f"{AT}/canary.txt", f"{AT}/renamed.txt")'),
    "move-in": (
        "moves a file of the workspace there",
        """
        create(f"{FREE}/mine")
        os.rename(f"{FREE}/mine", f"{AT}/canary.txt")
        """,
    ),
    "move-out": ("moves a file from there to the workspace", 'os.rename(f"{AT}/canary.txt", f"{FREE}/taken")'),
    "exchange": (
        "swaps two files",
        """
        create(f"{FREE}/mine")
        syscall("renameat2", -100, f"{FREE}/mine".encode(), -100, f"{AT}/canary.txt".encode(), 2)
        """,
    ),
    "hard-link-in": (
        "makes a hard link in the workspace and writes through it",
        """
        os.link(f"{AT}/canary.txt", f"{FREE}/same")
        overwrite(f"{FREE}/same")
        """,
    ),
    "hard-link-out": (
        "makes a hard link there to a file of the workspace",
        'create(f"{FREE}/mine"); os.link(f"{FREE}/mine", f"{AT}/new")',
    ),
    "write-mapped": (
        "writes into a file through memory",
        """
        with open(f"{AT}/canary.txt", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            memory[:3] = b"ESC"
        """,
    ),
    "punch-hole": (
        "makes a hole in a file",
        """
        file = os.open(f"{AT}/canary.txt", os.O_RDWR)
        libc.fallocate(file, 3, ctypes.c_long(0), ctypes.c_long(4))
        """,
    ),
}
_NO_CONTENT = {
    "chmod": ("changes who may read a file", 'os.chmod(f"{AT}/canary.txt", 0o777)'),
    "chmod-folder": ("changes who may read a folder", 'os.chmod(f"{AT}/folder", 0o777)'),
    "chmod-by-descriptor": (
        "changes who may read a file by an open descriptor",
        'os.fchmod(os.open(f"{AT}/canary.txt", os.O_RDONLY), 0o777)',
    ),
    "chmod-newest": (
        "changes who may read a file by the newest call",
        'syscall("fchmodat2", -100, f"{AT}/canary.txt".encode(), 0o777, 0)',
    ),
    "utimes": ("sets a file's time", 'os.utime(f"{AT}/canary.txt", (1, 1))'),
    "utimes-by-descriptor": (
        "sets a file's time by an open descriptor",
        'os.utime(os.open(f"{AT}/canary.txt", os.O_RDONLY), (1, 1))',
    ),
    "utimes-link": ("sets the time of a folder", 'os.utime(f"{AT}/folder", (1, 1), follow_symlinks=False)'),
    "setxattr": ("sets an attribute", 'os.setxattr(f"{AT}/canary.txt", "user.escaped", b"1")'),
    "setxattr-by-descriptor": (
        "sets an attribute by an open descriptor",
        'os.setxattr(os.open(f"{AT}/canary.txt", os.O_RDONLY), "user.escaped", b"1")',
    ),
    "set-flags": (
        "sets a flag of the file system",
        """
        file = os.open(f"{AT}/canary.txt", os.O_RDONLY)
        fcntl.ioctl(
            file,
            0x40086602,
            struct.pack("q", 0x40 | struct.unpack("q", fcntl.ioctl(file, 0x80086601, bytes(8)))[0]),
        )
        """,
    ),
}
_ROOT_ONLY = {
    "chown": ("gives a file to another user", 'os.chown(f"{AT}/canary.txt", 12345, 12345)'),
    "chown-by-descriptor": (
        "gives a file to another user by an open descriptor",
        'os.fchown(os.open(f"{AT}/canary.txt", os.O_RDONLY), 12345, 12345)',
    ),
    "chown-link": ("gives a folder to another user", 'os.lchown(f"{AT}/folder", 12345, 12345)'),
    "set-capability": (
        "gives a file a capability",
        """
        os.setxattr(f"{AT}/canary.txt", "security.capability", struct.pack("<5I", 0x02000001, 1 << 21, 0, 0, 0))
        """,
    ),
}
# By a descriptor only where the file can be opened at all.
_ATTRIBUTES = {
    "chmod-outside",
    "chmod-shown",
    "chmod-folder-outside",
    "chmod-by-descriptor-shown",
    "chmod-newest-outside",
    "chmod-newest-shown",
    "utimes-outside",
    "utimes-shown",
    "utimes-by-descriptor-shown",
    "utimes-link-outside",
}
_SHOWN_TOO = {
    "overwrite",
    "truncate",
    "create",
    "unlink",
    "rename",
    "move-in",
    "hard-link-in",
    "write-mapped",
    "chmod",
    "chmod-by-descriptor",
    "chmod-newest",
    "utimes",
    "utimes-by-descriptor",
    "setxattr",
    "setxattr-by-descriptor",
    "set-flags",
    "chown",
    "chown-by-descriptor",
    "set-capability",
    "make-pipe",
}
_INDIRECT = {
    "through-a-link": (
        "writes through a link in the workspace",
        """
        os.symlink(OUTSIDE, f"{FREE}/link")
        overwrite(f"{FREE}/link/canary.txt")
        """,
    ),
    "upwards": ("writes by going up from the workspace", 'overwrite(f"{WORKSPACE}/../outside/canary.txt")'),
    "by-own-root": ("writes by /proc/self/root", 'overwrite(f"/proc/self/root{OUTSIDE}/canary.txt")'),
    "by-own-cwd": ("writes by /proc/self/cwd", 'overwrite("/proc/self/cwd/../../outside/canary.txt")'),
    "by-first-root": ("writes by /proc/1/root", 'overwrite(f"/proc/1/root{OUTSIDE}/canary.txt")'),
    "by-runtime-root": ("writes by the runtime's root", 'overwrite(f"/proc/{RUNTIME}/root{OUTSIDE}/canary.txt")'),
    "by-outsider-cwd": (
        "makes a file in the folder where another process is",
        'create(f"/proc/{OUTSIDER}/cwd/../outside/new.txt")',
    ),
    "by-outsider-descriptor": (
        "writes into a deleted file that another process has open",
        'overwrite(f"/proc/{OUTSIDER}/fd/{HELD}")',
    ),
    "by-any-root": (
        "writes by the root of whatever process it finds",
        """
        for process in others():
            for path in (f"/proc/{process}", f"/proc/{process}/task/{process}"):
                attempt(overwrite, f"{path}/root{OUTSIDE}/canary.txt")
        """,
    ),
    "by-folder-descriptor": (
        "goes up from an open folder",
        """
        folder = os.open(WORKSPACE, os.O_RDONLY)
        up = os.open("..", os.O_RDONLY, dir_fd=folder)
        os.close(os.open("outside/new.txt", os.O_CREAT | os.O_WRONLY, dir_fd=up))
        """,
    ),
    "nameless-file": (
        "gives a file without a name its name outside",
        """
        file = os.open(FREE, os.O_TMPFILE | os.O_RDWR)
        os.link(f"/proc/self/fd/{file}", f"{OUTSIDE}/new.txt", src_dir_fd=0, follow_symlinks=True)
        """,
    ),
    "by-copying": (
        "copies in the kernel",
        """
        create(f"{FREE}/mine")
        source = os.open(f"{FREE}/mine", os.O_RDONLY)
        os.copy_file_range(source, os.open(f"{OUTSIDE}/canary.txt", os.O_RDWR), 7)
        """,
    ),
}
_SHELLS = {
    "by-programs": (
        "has ordinary programs write outside",
        """
        echo ESCAPED > "$OUTSIDE/new.txt"; cp /etc/passwd "$OUTSIDE/new2.txt"
        dd if=/dev/zero of="$OUTSIDE/canary.txt" count=1; tar cf - . | tar xf - -C "$OUTSIDE"; rm -rf "$OUTSIDE"
        """,
    ),
    "by-racing": (
        "swaps a folder for a link while it writes",
        """
        mkdir a; ln -s "$OUTSIDE" b
        for i in 1 2 3 4 5; do mv a c; mv b a; echo ESCAPED > a/new.txt; mv a b; mv c a; done
        """,
    ),
}


def _cases() -> list[Case]:
    found: list[Case] = []
    for name, (tries, lines) in (_CONTENT | _NO_CONTENT | _ROOT_ONLY).items():
        places = [("outside", "OUTSIDE"), *([("shown", "SHOWN")] if name in _SHOWN_TOO else [])]
        for place, constant in places:
            found.append(_at(name, place, f"{tries} ({place})", f"AT = {constant}\n{dedent(lines)}"))
    for name, (tries, lines) in _INDIRECT.items():
        found.append(
            Case(
                id=f"writing/{name}",
                family="writing",
                tries=tries,
                program=lines,
                real_for=("root",) if name == "by-first-root" else ("root", "ordinary"),
                host_may_refuse=name == "by-first-root",
            )
        )
    for name, (tries, lines) in _SHELLS.items():
        found.append(Case(id=f"writing/{name}", family="writing", tries=tries, program=lines, shell=True))
    return found


def _at(name: str, place: str, tries: str, program: str) -> Case:
    return Case(
        id=f"writing/{name}-{place}",
        family="writing",
        tries=tries,
        program=program,
        gap="attributes" if f"{name}-{place}" in _ATTRIBUTES else None,
        real_for=("root",) if name in _ROOT_ONLY else ("root", "ordinary"),
        host_may_refuse=name in {"set-flags", "chmod-newest", "setxattr", "setxattr-by-descriptor", "punch-hole"},
    )


CASES = [
    *_cases(),
    Case(
        id="writing/shared-folders",
        family="writing",
        tries="writes into files that lie in folders which all users share",
        program="""
        for path in SHARED:
            attempt(overwrite, path)
        """,
    ),
    Case(
        id="writing/new-in-shared-folders",
        family="writing",
        tries="makes files in folders that all users share",
        program="""
        for path in ABSENT:
            if path.startswith(("/tmp", "/var/tmp", "/dev/shm")):
                attempt(create, path)
        """,
    ),
    Case(
        id="writing/system-folders",
        family="writing",
        tries="makes files in the system's folders",
        program="""
        for path in ABSENT:
            if not path.startswith(("/dev/", "/tmp", "/var/tmp")):
                attempt(create, path)
        """,
        real_for=("root",),
        harmless=False,
    ),
    Case(
        id="writing/system-files",
        family="writing",
        tries="opens the system's own files to write to them",
        program="""
        for path in ("/etc/passwd", "/etc/hosts", "/etc/ld.so.cache", "/usr/bin/env", "/bin/bash", "/sbin/init"):
            opened(path, os.O_WRONLY)
        """,
        real_for=("root",),
    ),
    Case(
        id="writing/devices",
        family="writing",
        tries="opens the machine's disks and devices",
        program="""
        for path in glob.glob("/dev/[svx]d[a-z]*") + glob.glob("/dev/nvme*n*"):
            opened(path, os.O_RDONLY)
        for path in (
            "/dev/mem",
            "/dev/kmem",
            "/dev/port",
            "/dev/kvm",
            "/dev/console",
            "/dev/tty0",
            "/dev/net/tun",
            "/dev/vhost-net",
            "/dev/uinput",
            "/dev/mapper/control",
            "/dev/btrfs-control",
            "/dev/loop-control",
        ):
            opened(path, os.O_RDWR)
        """,
        real_for=("root",),
        host_may_refuse=True,
    ),
]
