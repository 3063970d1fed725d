"""What a careless runtime passes on: open descriptors, and its environment."""

from tests.escape.case import Case

_DESCRIPTORS = {
    "listed": (
        "finds open descriptors besides the three",
        """
        for name in os.listdir("/proc/self/fd"):
            if (
                int(name) > 2
                and os.path.exists(f"/proc/self/fd/{name}")
                and "/proc/" not in os.readlink(f"/proc/self/fd/{name}")
            ):
                print("REACHED descriptor", name, os.readlink(f"/proc/self/fd/{name}"))
        """,
    ),
    "counted": (
        "tries all numbers that a descriptor can have",
        """
        for number in range(3, 4096):
            try:
                os.fstat(number)
            except OSError:
                continue
            print("REACHED descriptor", number)
        """,
    ),
    "read": (
        "reads a secret from a descriptor that was left open",
        """
        for number in range(3, 1024):
            try:
                print(os.pread(number, 1000, 0).decode("latin-1"))
            except OSError:
                pass
        """,
    ),
    "folder": (
        "goes out by a folder that was left open",
        """
        for number in range(3, 1024):
            try:
                os.fchdir(number)
                show("outside/secret.txt")
            except OSError:
                pass
        """,
    ),
    "standard": (
        "opens its own standard descriptors again with more rights",
        """
        for number in (0, 1, 2):
            attempt(
                lambda: (
                    os.close(os.open(f"/proc/self/fd/{number}", os.O_WRONLY)),
                    print(os.readlink(f"/proc/self/fd/{number}")),
                )
            )
        if os.read(0, 10):
            print("REACHED stdin")
        if os.readlink("/proc/self/fd/0") != "/dev/null":
            print("REACHED stdin", os.readlink("/proc/self/fd/0"))
        """,
    ),
}
_ENVIRONMENT = {
    "secrets": ("prints the environment that it has", "for name, value in os.environ.items(): print(name, value)"),
    "secrets-of-parents": (
        "prints the environment of its own ancestors",
        """
        process = "self"
        for _ in range(5):
            attempt(show, f"/proc/{process}/environ")
            process = open(f"/proc/{process}/stat").read().rpartition(")")[2].split()[1]
            if process == "0" or int(process) == RUNTIME:
                break
        """,
    ),
    "names": (
        "finds variables that steer programs",
        """
        bad = (
            "LD_",
            "BASH_",
            "PYTHON",
            "PERL",
            "RUBY",
            "NODE_OPTIONS",
            "GIT_EXT",
            "GIT_DIR",
            "GIT_SSH",
            "GIT_ASK",
            "GIT_EDITOR",
            "ENV",
            "PS4",
            "PROMPT",
            "CDPATH",
            "SSH_AUTH",
            "HANDRAIL_S",
        )
        for name, value in os.environ.items():
            if name.startswith(bad) and name not in ("GIT_CONFIG_NOSYSTEM",):
                print("REACHED", name, value)
        """,
    ),
    "path": (
        "finds programs in whatever folder it stands in",
        r"""
        for folder in os.environ["PATH"].split(":"):
            if not folder.startswith("/"):
                print("REACHED", folder)
        with open("ls", "w") as file:
            file.write("#!/bin/sh\necho HIJACKED\n")
        os.chmod("ls", 0o755)
        run("ls")
        """,
    ),
}
_SHELL = {
    "bash-start": (
        "has bash read a file at its start",
        "true; bash -c true; sh -c true; cat /dev/null; bash -c 'cat /dev/null; true'",
    ),
    "traced": ("has bash run a command for its trace", "bash -c true; [[ $- == *x* ]] && echo HIJACKED; true"),
    "python-start": ("has Python read a file at its start", "python3 -c 'pass'; echo 'pass' | python3 -"),
    "linker": (
        "has the linker load a library",
        "ls / 2>&1 | grep -q preload && echo HIJACKED; /bin/true 2>&1 | grep -q . && echo HIJACKED; true",
    ),
    "git": (
        "has git run a program that the environment names",
        """
        git init -q here 2>/dev/null
        cd here && echo a > a && git add a 2>/dev/null
        echo b > a
        git status; git diff; git --no-pager log 2>/dev/null; true
        """,
    ),
    "perl": (
        "has perl load a module",
        "if command -v perl >/dev/null; then perl -e 1 2>&1 | grep -q nothing_of && echo HIJACKED; fi; true",
    ),
}

CASES = [
    *(
        Case(id=f"descriptors/{name}", family="descriptors", tries=tries, program=lines, floor=True)
        for name, (tries, lines) in _DESCRIPTORS.items()
    ),
    *(
        Case(id=f"environment/{name}", family="environment", tries=tries, program=lines, floor=True)
        for name, (tries, lines) in _ENVIRONMENT.items()
    ),
    *(
        Case(id=f"environment/{name}", family="environment", tries=tries, program=lines, shell=True, floor=True)
        for name, (tries, lines) in _SHELL.items()
    ),
]
