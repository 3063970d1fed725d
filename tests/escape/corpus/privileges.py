"""Setuid programs and files, device nodes, capabilities: more rights than the person has."""

from tests.escape.case import Case, User

_ROOT: tuple[User, ...] = ("root",)

CASES = [
    Case(
        id="privileges/no-new",
        family="privileges",
        tries="starts without the promise that no program gives it more rights",
        program='if "NoNewPrivs:\\t1" not in open("/proc/self/status").read(): print("REACHED new privileges")',
        floor=True,
    ),
    Case(
        id="privileges/capabilities",
        family="privileges",
        tries="has a capability over what is outside",
        program="""
        lines = [line for line in open("/proc/self/status").read().splitlines() if line.startswith("Cap")]
        status = dict(line.split(":\\t") for line in lines)
        held = int(status["CapEff"], 16) | int(status["CapPrm"], 16) | int(status["CapAmb"], 16)
        print("REACHED capabilities" if held else "none", status)
        """,
        gap="capabilities",
        gap_of=_ROOT,
        real_for=_ROOT,
    ),
    Case(
        id="privileges/setuid-programs",
        family="privileges",
        tries="has setuid programs give it another user's rights",
        program="""
        if os.getuid() == 0: return
        for line in ("sudo -n id", "mount -t tmpfs none /tmp", "pkexec id", "passwd -d root", "ping -c1 127.0.0.1"):
            if shutil.which(line.split()[0]): attempt(run, *line.split())
        # As such a program sees it: were the bit to count, its child would be root's.
        for path in filter(os.path.exists, ("/usr/bin/su", "/usr/bin/mount", "/usr/bin/passwd")):
            program = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            owner = attempt(lambda: open(f"/proc/{program.pid}/status").read().split("Uid:")[1].split()[1])
            if owner == "0": print("REACHED", path)
            program.kill()
        """,
        real_for=(),
    ),
    Case(
        id="privileges/setuid-copy",
        family="privileges",
        tries="leaves a setuid program in the workspace that belongs to somebody else than the workspace",
        program="""
        shutil.copy("/bin/bash", "bash-as-other")
        attempt(os.chown, "bash-as-other", 1, 1)
        attempt(os.chmod, "bash-as-other", 0o6755)
        status = os.stat("bash-as-other")
        if status.st_mode & 0o6000 and status.st_uid != os.stat(WORKSPACE).st_uid: print("REACHED", status)
        """,
        real_for=_ROOT,
    ),
    Case(
        id="privileges/setuid-left",
        family="privileges",
        tries="leaves a setuid program of its own user in the workspace, for others to become that user by",
        program="""
        shutil.copy("/bin/bash", "bash-as-me")
        attempt(os.chmod, "bash-as-me", 0o6755)
        if os.stat("bash-as-me").st_mode & 0o6000: print("REACHED a setuid program")
        """,
    ),
    Case(
        id="privileges/setuid-own",
        family="privileges",
        tries="gains rights by a setuid program that it made itself",
        program="""
        shutil.copy("/bin/bash", "bash-as-me"); os.chmod("bash-as-me", 0o4755)
        run("./bash-as-me", "-p", "-c", f"cat {OUTSIDE}/secret.txt; echo ESCAPED > {OUTSIDE}/new.txt; id -u")
        """,
    ),
    Case(
        id="privileges/file-capability",
        family="privileges",
        tries="gains a capability by a file that it gave one",
        program="""
        shutil.copy(os.path.realpath("/usr/bin/python3"), "python-with-more")
        more = struct.pack("<5I", 0x02000001, 1 << 1 | 1 << 2 | 1 << 21, 0, 0, 0)
        os.setxattr("python-with-more", "security.capability", more)
        print("REACHED a file with capabilities")
        """,
        real_for=_ROOT,
    ),
    Case(
        id="privileges/node-of-disk",
        family="privileges",
        tries="makes the node of a disk in the workspace",
        program='os.mknod("disk", 0o666 | stat.S_IFBLK, DEVICE); print("REACHED a node")',
        real_for=_ROOT,
    ),
    Case(
        id="privileges/node-of-memory",
        family="privileges",
        tries="makes the node of the kernel's memory",
        program='os.mknod("memory", 0o666 | stat.S_IFCHR, os.makedev(1, 1)); print("REACHED a node")',
        real_for=_ROOT,
    ),
    Case(
        id="privileges/node-by-descriptor",
        family="privileges",
        tries="makes a node in an open folder",
        program="""
        folder = os.open(".", os.O_RDONLY)
        os.mknod("node", 0o666 | stat.S_IFCHR, os.makedev(1, 11), dir_fd=folder)
        print("REACHED a node")
        """,
        real_for=_ROOT,
    ),
    Case(
        id="privileges/other-user",
        family="privileges",
        tries="becomes another user",
        program="""
        for number in (1, 65534, 0 if os.getuid() else 2):
            attempt(lambda: (os.setresuid(number, number, number), print("REACHED user", number)))
        attempt(lambda: (os.setgroups([0, 4, 6]), print("REACHED groups")))
        """,
        real_for=_ROOT,
    ),
    Case(
        id="privileges/scheduled",
        family="privileges",
        tries="has a service start something later",
        program="""
        for words in (("at", "now"), ("crontab", "-"), ("batch",)):
            if shutil.which(words[0]): attempt(run, *words, input=f"* * * * * touch {OUTSIDE}/new.txt\\n")
        for manager in ((), ("--user",)):
            if shutil.which("systemd-run"): attempt(run, "systemd-run", *manager, "touch", f"{OUTSIDE}/new.txt")
        settings = f"{HOME}/.config"
        for path in ("/var/spool/cron/crontabs/root", "/etc/cron.d/escape", f"{settings}/autostart/escape.desktop"):
            attempt(create, path)
        """,
        harmless=False,
        real_for=(),
    ),
    Case(
        id="privileges/login-files",
        family="privileges",
        tries="leaves commands where the person's shell finds them at the next login",
        program="""
        for name in (".bashrc", ".profile", ".bash_profile", ".gitconfig", ".ssh/authorized_keys", ".local/bin/ls"):
            attempt(lambda: open(f"{HOME}/{name}", "a").write("touch escaped\\n"))
        """,
    ),
]
