"""Ways past a layer, to the files that it lies over: what is changed there was changed for good, unseen and unasked."""

from textwrap import dedent

from tests.escape.case import Case, User

_ROOT: tuple[User, ...] = ("root",)
_NOBODY: tuple[User, ...] = ()
_USERS: tuple[User, ...] = ("root", "ordinary")

# What each does comes after these words, and who succeeds with it in a layer that has no sandbox in it.
_WAYS: dict[str, tuple[str, str, tuple[User, ...]]] = {
    "umount": (
        "takes the layer away",
        """
        for flags in (2, 1, 8, 0):
            print(syscall("umount2", WORKSPACE.encode(), flags))
        os.chdir("/")
        overwrite(NOTES)
        """,
        _USERS,
    ),
    "umount-by-program": (
        "takes the layer away by the system's program",
        """
        os.chdir("/")
        attempt(run, "umount", "-l", WORKSPACE)
        overwrite(NOTES)
        """,
        _USERS,
    ),
    "umount-in-namespaces": (
        "takes the layer away as root of namespaces of its own",
        """
        print(syscall("unshare", 0x10020000))
        attempt(lambda: open("/proc/self/setgroups", "w").write("deny"))
        attempt(lambda: open("/proc/self/uid_map", "w").write("0 0 1"))
        print(syscall("umount2", WORKSPACE.encode(), 2))
        overwrite(NOTES)
        """,
        _NOBODY,  # the kernel locks what was mounted outside
    ),
    "umount-by-program-in-namespaces": (
        "takes the layer away by a program that makes namespaces",
        """
        script = f"cd /; umount -l {WORKSPACE}; echo ESCAPED >{NOTES}"
        attempt(run, "unshare", "--map-root-user", "--mount", "sh", "-c", script)
        attempt(run, "unshare", "--mount", "sh", "-c", script)
        attempt(run, "bwrap", "--dev-bind", "/", "/", "sh", "-c", script)
        """,
        _ROOT,
    ),
    "move-the-mount": (
        "moves the layer to another place",
        """
        os.mkdir(f"{FREE}/place")
        print(syscall("mount", WORKSPACE.encode(), f"{FREE}/place".encode(), None, 8192, None))
        overwrite(NOTES)
        """,
        _NOBODY,  # what lies below is shared with others on most machines
    ),
    "bind-the-parent": (
        "binds the parent of the workspace, without what is mounted in it",
        """
        os.mkdir(f"{FREE}/parent")
        print(syscall("mount", PLACE.encode(), f"{FREE}/parent".encode(), None, 4096, None))
        overwrite(NOTES.replace(PLACE, f"{FREE}/parent"))
        """,
        _ROOT,
    ),
    "open-tree": (
        "opens the tree of the parent without what is mounted in it",
        """
        tree = syscall("open_tree", -100, PLACE.encode(), 1)[0]
        os.chdir(f"/proc/self/fd/{tree}")
        overwrite(os.path.relpath(NOTES, PLACE))
        """,
        _ROOT,
    ),
    "remount": (
        "mounts the layer anew, with other folders",
        """
        options = f"lowerdir=/usr,upperdir={WORKSPACE},workdir=/tmp".encode()
        print(syscall("mount", b"none", WORKSPACE.encode(), b"overlay", 32, options))
        print(syscall("mount", b"none", WORKSPACE.encode(), b"overlay", 0, options))
        picked = syscall("fspick", -100, WORKSPACE.encode(), 0)[0]
        print(syscall("fsconfig", picked, 7, None, None, 0))
        overwrite(NOTES)
        """,
        _NOBODY,
    ),
    "other-root": (
        "goes by the root and the folder of every process",
        """
        for process in others():
            for way in ("root" + NOTES, "cwd/notes.txt", "cwd/ordinary/notes.txt", "cwd/upper-0/ordinary/notes.txt"):
                attempt(overwrite, f"/proc/{process}/{way}")
        """,
        _ROOT,
    ),
    "other-descriptors": (
        "goes by the descriptors of every process",
        """
        for process in others():
            for number in attempt(os.listdir, f"/proc/{process}/fd") or ():
                for way in ("", "/notes.txt", "/ordinary/notes.txt", "/workspace/ordinary/notes.txt", NOTES):
                    if int(number) > 2:
                        attempt(overwrite, f"/proc/{process}/fd/{number}{way}")
        """,
        _NOBODY,
    ),
    "other-namespaces": (
        "goes into the mounts of every process",
        """
        for kind in ("mnt", "user", "mnt"):
            for process in others():
                attempt(lambda: print(syscall("setns", os.open(f"/proc/{process}/ns/{kind}", os.O_RDONLY), 0)))
        attempt(run, "nsenter", "--target", "1", "--mount", "sh", "-c", f"echo ESCAPED >{NOTES}")
        os.chdir("/")
        overwrite(NOTES)
        """,
        _ROOT,
    ),
    "the-layer-itself": (
        "writes to the folder that takes in what it changes, by its path",
        """
        for folder in glob.glob(f"{STATE}/layers/*") + glob.glob("/dev/shm/handrail-layers-*/*"):
            print("REACHED", folder)
        for name in ("upper-0", "work-0", "../upper-0", "../../upper-0", "/upper-0", f"{WORKSPACE}/../upper-0"):
            if os.path.exists(name):
                print("REACHED", name)
        """,
        _USERS,
    ),
    "by-handle": (
        "opens a file below by a handle that has no path",
        """
        handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + b"\\0" * 128)
        number = ctypes.c_int()
        for path in (NOTES, WORKSPACE, "/usr", "/"):
            print(syscall("name_to_handle_at", -100, path.encode(), handle, ctypes.byref(number), 0))
            folder = os.open("/usr", os.O_RDONLY)
            print(found := syscall("open_by_handle_at", folder, handle, os.O_RDWR)[0])
            os.write(found, b"ESCAPED") if found >= 0 else None
        for kind in (1, 2, 0x81):
            inode = os.stat(NOTES).st_ino
            handle = ctypes.create_string_buffer(struct.pack("IiII", 8, kind, inode, 0))
            folder = os.open("/usr", os.O_RDONLY)
            found = syscall("open_by_handle_at", folder, handle, os.O_RDWR)[0]
            os.write(found, b"ESCAPED") if found >= 0 else None
        """,
        _NOBODY,
    ),
    "hard-link": (
        "links files below to other places, and writes by those",
        """
        os.symlink(NOTES, "/tmp/link")
        for place in ("/tmp/same", f"{WORKSPACE}/same", f"{FREE}/same", f"{SHOWN}/same", "/dev/shm/same"):
            attempt(os.link, NOTES, place)
            attempt(overwrite, place)
        attempt(overwrite, "/tmp/link")
        """,
        _NOBODY,
    ),
    "opened-before": (
        "opens a file while it still lies below, and writes by that once it was copied",
        """
        file, folder = os.open(NOTES, os.O_RDONLY), os.open(FREE, os.O_RDONLY)
        path = os.open(NOTES, os.O_PATH)
        overwrite(NOTES)
        for number in (file, path):
            attempt(overwrite, f"/proc/self/fd/{number}")
            attempt(os.chmod, f"/proc/self/fd/{number}", 0o777)
            attempt(os.truncate, f"/proc/self/fd/{number}", 0)
        attempt(os.write, file, b"ESCAPED")
        attempt(os.fchmod, file, 0o777)
        attempt(os.utime, file, (1, 1))
        attempt(os.setxattr, file, "user.escaped", b"1")
        attempt(os.removexattr, file, "user.escaped")
        attempt(os.unlink, "notes.txt", dir_fd=folder)
        attempt(lambda: os.close(os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=folder)))
        attempt(os.fchmod, folder, 0o777)
        attempt(os.utime, folder, (1, 1))
        """,
        _NOBODY,
    ),
    "mapped-before": (
        "maps a file while it still lies below, and writes to it once it was copied",
        """
        with open(NOTES, "rb") as file:
            before = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            overwrite(NOTES)
            print(libc.mprotect(ctypes.c_void_p(0), 4096, 3))
            attempt(mmap.mmap, file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        with open(NOTES, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            memory[:3] = b"ESC"
        """,
        _NOBODY,
    ),
    "flags": (
        "sets flags of a file below by an open descriptor",
        """
        file = os.open(NOTES, os.O_RDONLY)
        for call in (0x40086602, 0x401c5820, 0x40049409, 0x400c6615):
            attempt(fcntl.ioctl, file, call, struct.pack("Q", 0x80) + bytes(24))
        print(syscall("file_setattr", -100, NOTES.encode(), ctypes.create_string_buffer(32), 32, 0))
        """,
        _NOBODY,
    ),
    "fallocate": (
        "makes holes in, and copies over, a file that was opened before it was copied",
        """
        other, file = os.open(NOTES, os.O_RDONLY), os.open(NOTES, os.O_RDWR)
        print(libc.fallocate(other, 3, ctypes.c_long(0), ctypes.c_long(4)))
        print(libc.fallocate(file, 3, ctypes.c_long(0), ctypes.c_long(4)))
        print(syscall("copy_file_range", file, None, other, None, 4, 0))
        attempt(fcntl.ioctl, other, 0x40049409, file)
        """,
        _NOBODY,
    ),
    "attributes-of-overlayfs": (
        "sets attributes by which overlayfs knows what is removed, renamed or elsewhere",
        """
        for place in (NOTES, FREE, WORKSPACE):
            for name in "opaque whiteout whiteouts redirect metacopy origin impure upper nlink protattr".split():
                for space in ("user", "trusted"):
                    for value in (b"y", b"x", b"", b"/../../outside/canary.txt"):
                        attempt(os.setxattr, place, f"{space}.overlay.{name}", value)
        attempt(shutil.rmtree, FREE)
        attempt(os.mkdir, FREE)
        """,
        _NOBODY,
    ),
    "forged-whiteout": (
        "makes what overlayfs takes for a removed file",
        """
        os.mkdir("made")
        for name in ("made/one", NOTES):
            reach("mknodat", -100, name.encode(), 0o020000, 0, refusals=(*REFUSALS, errno.EEXIST))
        print(syscall("renameat2", -100, NOTES.encode(), -100, f"{FREE}/other".encode(), 4))
        """,
        _NOBODY,  # overlayfs lets nobody make one
    ),
    "swap-the-workspace": (
        "puts something else in the place of the workspace and of folders in it",
        """
        attempt(os.rename, WORKSPACE, f"{PLACE}/moved")
        attempt(os.rename, FREE, f"{WORKSPACE}/moved")
        attempt(os.symlink, f"{PLACE}/outside", FREE)
        attempt(overwrite, f"{FREE}/canary.txt")
        attempt(os.rmdir, WORKSPACE)
        """,
        _NOBODY,
    ),
    "everything": (
        "removes, closes and writes everything in the workspace",
        """
        attempt(run, "sh", "-c", f"chmod -R a+rwx {WORKSPACE}; touch -d @1 {WORKSPACE} {NOTES}; rm -rf {WORKSPACE}/*")
        attempt(run, "sh", "-c", f"mkdir -p {FREE}; echo ESCAPED >{NOTES}; chmod 000 {FREE}")
        """,
        _NOBODY,
    ),
    "disk": (
        "writes past the layer through what is mounted from the disk",
        """
        for line in open("/proc/self/mountinfo"):
            words = line.split()
            for place in (words[4], f"/proc/self/root{words[4]}", words[3]):
                for way in (NOTES, "/ordinary/notes.txt", "/workspace/ordinary/notes.txt"):
                    attempt(overwrite, place + way)
        """,
        _NOBODY,
    ),
}

CASES = tuple(
    Case(
        id=f"layer-{name}",
        family="layers",
        tries=tries,
        program=f'NOTES = f"{{FREE}}/notes.txt"\n{dedent(program)}',
        real_for=real_for,
        harmless=False,
        host_may_refuse=True,
        not_tried_at=(0, 1, 2),
    )
    for name, (tries, program, real_for) in _WAYS.items()
)
