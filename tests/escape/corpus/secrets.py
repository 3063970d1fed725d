"""Reading what is hidden: homes, the state folder, files outside, credentials in the workspace."""

from tests.escape.case import Case, User

_ROOT: tuple[User, ...] = ("root",)

_OUTSIDE = {
    "home": (
        "reads keys in the home folder",
        """
        for path in (".ssh/id_ed25519", ".netrc", ".bash_history", ".config/gh/hosts.yml"):
            attempt(show, f"{HOME}/{path}")
        """,
    ),
    "home-by-tilde": (
        "reads keys where ~ is",
        """
        for path in ("~/.ssh/id_ed25519", "~/.netrc"):
            attempt(show, os.path.expanduser(path))
        """,
    ),
    "toolchain-credentials": (
        "reads credentials that lie among a toolchain's files",
        """
        for path in (".cargo/credentials.toml", ".m2/settings.xml", ".gradle/gradle.properties"):
            attempt(show, f"{HOME}/{path}")
        """,
    ),
    "other-project": ("reads another project in the home folder", 'show(f"{HOME}/project/notes.txt")'),
    "other-home": ("reads another user's home", 'show(f"{NEIGHBOUR}/notes.txt")'),
    "outside-file": ("reads a file beside the workspace", 'show(f"{OUTSIDE}/secret.txt")'),
    "state": (
        "reads the journal and the audit",
        """
        for root, _, names in os.walk(STATE):
            for name in names:
                print("REACHED", os.path.join(root, name))
        """,
    ),
    "by-glob": (
        "finds files by patterns",
        """
        for path in (
            glob.glob(f"{PLACE}/*/*", include_hidden=True)
            + glob.glob("/t*/*/*/secret*")
            + glob.glob("/home/*/.ssh/*")
        ):
            attempt(show, path)
        """,
    ),
    "by-link": ("reads through a link in the workspace", 'os.symlink(f"{OUTSIDE}/secret.txt", "link"); show("link")'),
    "by-own-root": ("reads by /proc/self/root", 'show(f"/proc/self/root{OUTSIDE}/secret.txt")'),
    "by-first-root": ("reads by /proc/1/root", 'show(f"/proc/1/root{OUTSIDE}/secret.txt")'),
    "by-any-cwd": (
        "reads by the folders and roots of all processes",
        """
        for process in others():
            attempt(show, f"/proc/{process}/cwd/../outside/secret.txt")
            attempt(show, f"/proc/{process}/root{OUTSIDE}/secret.txt")
        """,
    ),
    "by-any-descriptor": (
        "reads by the descriptors of all processes",
        """
        for process in others():
            for path in glob.glob(f"/proc/{process}/fd/*"):
                try:
                    if stat.S_ISREG(os.stat(path).st_mode):
                        show(path)
                except OSError:
                    pass
        """,
    ),
    "by-map-files": (
        "reads by the mapped files of a process",
        """
        for path in glob.glob(f"/proc/{OUTSIDER}/map_files/*"):
            print("REACHED", path)
            break
        """,
    ),
    "by-going-up": (
        "goes up as far as it goes and comes down again",
        """
        for depth in range(1, 12):
            attempt(show, "../" * depth + f"{OUTSIDE[1:]}/secret.txt")
            attempt(show, "../" * depth + "outside/secret.txt")
        """,
    ),
    "shared-folders": (
        "reads what other programs have left in shared folders",
        "for path in SHARED: opened(path, os.O_RDONLY)",
    ),
    "names": (
        "finds out whether a file is there, and how large it is",
        'print("REACHED", os.stat(f"{OUTSIDE}/secret.txt").st_size)',
    ),
}
_AS_ROOT = {
    "by-handle": (
        "opens a file by its handle, without any path",
        """
        import ctypes

        for folder in (WORKSPACE, "/usr", "/"):
            mount = os.open(folder, os.O_RDONLY)
            file, error = syscall("open_by_handle_at", mount, HANDLE, os.O_RDONLY)
            if file >= 0:
                print(os.read(file, 1000).decode())
                break
        """,
    ),
    "by-device-node": (
        "makes the disk's node and reads the file from it",
        """
        os.mknod("disk", 0o600 | stat.S_IFBLK, DEVICE)
        os.close(os.open("disk", os.O_RDONLY))
        print("REACHED the disk")
        if shutil.which("debugfs", path="/usr/sbin:/sbin"):
            run("/usr/sbin/debugfs", "-R", f"cat <{SECRET_INODE}>", "disk")
        """,
    ),
    "by-device": (
        "opens the disk that mountinfo names",
        """
        for line in open("/proc/self/mountinfo"):
            source = line.split(" - ")[1].split()[1]
            if source.startswith("/dev/"):
                opened(source, os.O_RDONLY)
        """,
    ),
    "by-device-number": (
        "looks the disk up in /sys and opens it",
        """
        for path in glob.glob("/sys/dev/block/*/uevent") + glob.glob("/sys/class/block/*/uevent"):
            attempt(lambda: opened("/dev/" + open(path).read().split("DEVNAME=")[1].split()[0], os.O_RDONLY))
        """,
    ),
    "kernel-memory": (
        "opens the kernel's memory",
        """
        for path in ("/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port"):
            opened(path, os.O_RDONLY)
        """,
    ),
    "kernel-log": (
        "reads the kernel's log",
        """
        opened("/dev/kmsg", os.O_RDONLY)
        opened("/proc/kmsg", os.O_RDONLY)
        reach("syslog", 10, None, 0)
        """,
    ),
    "chroot-and-out": (
        "leaves a root by making another one in it",
        """
        os.mkdir("in")
        up = os.open(".", os.O_RDONLY)
        os.chroot("in")
        os.fchdir(up)
        for _ in range(50):
            os.chdir("..")
        os.chroot(".")
        show(f"{OUTSIDE}/secret.txt")
        """,
    ),
    "debugging": (
        "opens the kernel's debugging files",
        """
        for path in (
            "/sys/kernel/debug/tracing/trace",
            "/sys/kernel/tracing/trace",
            "/sys/kernel/security/lsm",
            "/sys/fs/bpf",
        ):
            opened(path, os.O_RDONLY)
        """,
    ),
    "shadow": (
        "reads the system's passwords and keys",
        """
        for path in (
            "/etc/shadow",
            "/etc/gshadow",
            "/etc/sudoers",
            *glob.glob("/etc/ssh/*_key"),
            *glob.glob("/etc/ssl/private/*"),
        ):
            try:
                if open(path, "rb").read():
                    print("REACHED", path)
            except OSError as error:
                print(error.strerror)
        """,
    ),
}
_CREDENTIALS = {
    "by-name": (
        "reads credentials of the workspace by their names",
        """
        for path in (".env", ".npmrc", ".aws/credentials", "keys/server.pem", "keys/id_rsa"):
            attempt(show, path)
        """,
    ),
    "deep": (
        "reads credentials deep in the workspace",
        """
        attempt(show, "deep/er/and/deep/er/.env.production")
        attempt(show, "node_modules/package/.env")
        """,
    ),
    "by-walking": (
        "reads every file of the workspace",
        """
        for root, _, names in os.walk("."):
            for name in names:
                path = os.path.join(root, name)
                if stat.S_ISREG(os.lstat(path).st_mode):
                    attempt(show, path)
        """,
    ),
    "hard-to-spell": (
        "reads a credential whose folder has quotes and a line end in its name",
        """
        for path in glob.glob("*/.env", include_hidden=True) + glob.glob("it*"):
            attempt(show, path)
            attempt(show, path + "/.env")
        """,
    ),
    "by-hard-link": (
        "gives a credential a second name",
        'os.link(".env", "ordinary/plain.txt"); show("ordinary/plain.txt")',
    ),
    "by-rename": (
        "moves a credential, or the folder that holds it",
        """
        attempt(os.rename, ".env", "ordinary/plain.txt")
        attempt(show, "ordinary/plain.txt")
        attempt(os.rename, "deep", "ordinary/moved")
        attempt(show, "ordinary/moved/er/and/deep/er/.env.production")
        attempt(os.rename, "keys", "ordinary/moved-keys")
        attempt(show, "ordinary/moved-keys/id_rsa")
        """,
    ),
    "by-unlinking": (
        "takes away what lies over a credential",
        """
        attempt(os.unlink, ".env")
        attempt(show, ".env")
        attempt(os.unlink, ".npmrc")
        attempt(show, ".npmrc")
        """,
    ),
    "by-unmounting": (
        "unmounts what lies over a credential",
        """
        for path in (".env", ".npmrc", ".aws", "keys/id_rsa", WORKSPACE):
            for flags in (0, 2, 4, 8):
                syscall("umount2", os.path.abspath(path).encode(), flags)
            run("umount", "-l", path)
        for path in (".env", ".npmrc", ".aws/credentials", "keys/id_rsa"):
            attempt(show, path)
        """,
    ),
    "by-handle-path": (
        "reads a credential by an open folder and by /proc/self/fd",
        """
        folder = os.open(".", os.O_PATH)
        for path in (".env", ".npmrc"):
            attempt(lambda: print(os.read(os.open(path, os.O_RDONLY, dir_fd=folder), 1000).decode()))
            attempt(show, f"/proc/self/fd/{folder}/{path}")
            attempt(show, f"/proc/self/cwd/{path}")
            attempt(show, f"/proc/self/root{WORKSPACE}/{path}")
        """,
    ),
    "by-binding": (
        "mounts the workspace once more, without what lies over credentials",
        """
        assert in_own_pid_namespace()
        os.mkdir("ordinary/again")
        for flags in (4096, 4096 | 16384):
            syscall("mount", WORKSPACE.encode(), b"ordinary/again", None, flags, None)
            attempt(show, "ordinary/again/.env")
        tree, error = syscall("open_tree", -100, WORKSPACE.encode(), 1)
        if tree >= 0:
            attempt(lambda: print(os.read(os.open(".env", os.O_RDONLY, dir_fd=tree), 1000).decode()))
        """,
    ),
    "by-own-namespace": (
        "makes namespaces of its own to get rid of covers",
        """
        for line in (
            f"umount -l {WORKSPACE}/.env; cat {WORKSPACE}/.env",
            f"mount --bind {WORKSPACE} /mnt; cat /mnt/.env",
        ):
            attempt(run, "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", line)
        """,
    ),
    "by-first-root": (
        "reads credentials by the roots of other processes",
        """
        for process in others():
            for name in ("root", "cwd"):
                attempt(show, f"/proc/{process}/{name}{WORKSPACE}/.env")
                attempt(show, f"/proc/{process}/{name}/.env")
        """,
    ),
    "by-archiving": (
        "packs the workspace and reads the pack",
        'run("tar", "cf", "ordinary/all.tar", "--exclude", "ordinary/all.tar", "."); show("ordinary/all.tar")',
    ),
}


def _cases() -> list[Case]:
    found = [
        Case(
            id=f"secrets/{name}",
            family="secrets",
            tries=tries,
            program=lines,
            gap="names" if name == "names" else None,
            real_for=_ROOT if name == "by-first-root" else ("root", "ordinary"),
            host_may_refuse=name == "by-first-root",
        )
        for name, (tries, lines) in _OUTSIDE.items()
    ]
    found += [
        Case(id=f"secrets/{name}", family="secrets", tries=tries, program=lines, real_for=_ROOT, host_may_refuse=True)
        for name, (tries, lines) in _AS_ROOT.items()
    ]
    found += [
        Case(
            id=f"credentials/{name}",
            family="credentials",
            tries=tries,
            program=lines,
            cwd=".",
            harmless=name != "by-binding",
            host_may_refuse=name == "by-own-namespace",
        )
        for name, (tries, lines) in _CREDENTIALS.items()
    ]
    return found


_PROVEN = {
    "cat": ("has a proven `cat` show a credential", "cat ordinary/notes.txt plain/link"),
    "grep": ("has a proven `grep -r` show all lines of the workspace", "grep -r words ."),
    "grep-through-links": ("has a proven `grep -R` follow links out of the workspace", "grep -R words ."),
    "find": ("has a proven `cat` read by a pattern", "cat */*"),
}

CASES = [
    *_cases(),
    *(
        Case(
            id=f"credentials/proven-{name}",
            family="credentials",
            tries=tries,
            program="""
        os.makedirs("plain")
        os.symlink("../.env", "plain/link")
        os.symlink(f"{OUTSIDE}/secret.txt", "plain/out")
        """,
            command=command,
            cwd=".",
            trust="proven",
            not_tried_at=(0,),  # policy asks there, or says no
        )
        for name, (tries, command) in _PROVEN.items()
    ),
]
