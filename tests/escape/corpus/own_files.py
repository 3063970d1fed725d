"""handrail's own files: what decides what a command may do, and what records what it did."""

from tests.escape.case import Case

_STATE = {
    "state-write": (
        "writes into the state folder",
        """
        for root, _, names in os.walk(STATE):
            for name in names:
                opened(os.path.join(root, name), os.O_WRONLY)
        attempt(create, f"{STATE}/escaped")
        print("REACHED" if os.path.exists(f"{STATE}/escaped") and not in_own_pid_namespace() else "no")
        """,
    ),
    "state-rename": ("moves the state folder away", 'os.rename(STATE, f"{STATE}-moved")'),
    "state-link": (
        "puts a link where the state folder is",
        """
        attempt(os.rename, STATE, f"{STATE}-moved")
        attempt(os.symlink, WORKSPACE, STATE)
        """,
    ),
    "settings": (
        "writes the user's settings",
        """
        os.makedirs(f"{HOME}/.config/handrail", exist_ok=True)
        create(f"{HOME}/.config/handrail/config.toml")
        """,
    ),
}
_SEALED = {
    "project-overwrite": ("writes into the project's settings", 'overwrite("handrail.toml")'),
    "project-unlink": ("deletes the project's settings", 'os.unlink("handrail.toml")'),
    "project-replace": (
        "puts another file in the place of the project's settings",
        'create("ordinary/mine"); os.rename("ordinary/mine", "handrail.toml")',
    ),
    "project-link": (
        "writes the project's settings by a second name",
        'os.link("handrail.toml", "ordinary/same"); overwrite("ordinary/same")',
    ),
    "project-folder": ("writes into .handrail", 'overwrite(".handrail/rules.toml")'),
    "project-folder-new": (
        "puts a tool into .handrail",
        """
        os.makedirs(".handrail/tools", exist_ok=True)
        create(".handrail/tools/escaped.py")
        print("REACHED a tool")
        """,
    ),
    "project-folder-rename": (
        "moves .handrail away and makes its own",
        """
        os.rename(".handrail", "ordinary/moved")
        os.mkdir(".handrail")
        create(".handrail/rules.toml")
        """,
    ),
    "project-chmod": ("changes who may read the project's settings", 'os.chmod("handrail.toml", 0o777)'),
    "project-descriptor": (
        "writes the project's settings by a descriptor that was opened for reading",
        """
        file = os.open("handrail.toml", os.O_RDONLY)
        overwrite(f"/proc/self/fd/{file}")
        """,
    ),
    "project-unmount": (
        "unmounts what protects the project's settings",
        """
        syscall("umount2", f"{WORKSPACE}/handrail.toml".encode(), 2)
        syscall("umount2", f"{WORKSPACE}/.handrail".encode(), 2)
        attempt(overwrite, "handrail.toml")
        attempt(overwrite, ".handrail/rules.toml")
        """,
    ),
}

CASES = [
    *(
        Case(
            id=f"own/{name}",
            family="own",
            tries=tries,
            program=lines,
            harmless=name == "settings",
            real_for=("root", "ordinary"),
        )
        for name, (tries, lines) in _STATE.items()
    ),
    Case(
        id="own/managed-settings",
        family="own",
        tries="writes the settings of the machine",
        program="""
        attempt(os.makedirs, "/etc/handrail", exist_ok=True)
        attempt(create, "/etc/handrail/escaped.toml")
        if os.path.exists("/etc/handrail/escaped.toml"):
            print("REACHED")
        """,
        harmless=False,
    ),
    *(
        Case(
            id=f"own/{name}",
            family="own",
            tries=tries,
            program=lines,
            cwd=".",
            gap="attributes" if name == "project-chmod" else None,
        )
        for name, (tries, lines) in _SEALED.items()
    ),
]
