"""Taking more than there is to have, and staying longer than the call."""

from tests.escape.case import Case

# What the harness sets; attacks try to get beyond it.
PROCESSES = 48
MEGABYTES = 256
FILE_MEGABYTES = 16

_TAKING = {
    "processes": (
        "has more processes than it may at a time",
        f"""
        count = 0
        for _ in range({PROCESSES * 3}):
            try: child = os.fork()
            except OSError: break
            if child == 0:
                time.sleep(PATIENCE + 5); os._exit(0)
            count += 1
        print("there were", count, flush=True)
        time.sleep(PATIENCE)
        if count > {PROCESSES}: print("REACHED", count, flush=True)
        """,
    ),
    "memory": (
        "holds more memory than it may",
        f"""
        held = []
        for count in range({MEGABYTES * 3} // 16):
            held.append(bytearray(b"x") * (16 << 20))
            time.sleep(0.01)
        print("there were", len(held) * 16, "MB", flush=True)
        time.sleep(PATIENCE)
        print("REACHED the end", flush=True)
        """,
    ),
    "memory-spread": (
        "holds memory in many processes, each with little",
        f"""
        children = []
        for _ in range(12):
            child = os.fork()
            if child == 0:
                held = bytearray(b"x") * ({MEGABYTES} << 20 >> 2)
                time.sleep(PATIENCE + 5); os._exit(0)
            children.append(child)
        time.sleep(PATIENCE)
        print("REACHED the end", flush=True)
        """,
    ),
}


CASES = [
    *(
        Case(id=f"exhausting/{name}", family="exhausting", tries=tries, program=lines, floor=True, survives=False)
        for name, (tries, lines) in _TAKING.items()
    ),
    Case(
        id="exhausting/large-file",
        family="exhausting",
        tries="writes a file larger than it may",
        program=f"""
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with open("large", "wb") as file:
            attempt(file.truncate, {FILE_MEGABYTES * 4} << 20)
            attempt(lambda: [file.write(bytes(1 << 20)) for _ in range({FILE_MEGABYTES * 2})])
        if os.path.getsize("large") > {FILE_MEGABYTES} << 20: print("REACHED", os.path.getsize("large"))
        """,
        floor=True,
    ),
    Case(
        id="exhausting/raise-limits",
        family="exhausting",
        tries="raises its own limits again",
        program=f"""
        for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
            attempt(resource.setrlimit, kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with open("large", "wb") as file: attempt(file.truncate, {FILE_MEGABYTES * 4} << 20)
        if os.path.getsize("large") > {FILE_MEGABYTES} << 20: print("REACHED", os.path.getsize("large"))
        """,
        floor=True,
    ),
    Case(
        id="exhausting/descriptors",
        family="exhausting",
        tries="opens more files than the machine can bear",
        program="""
        attempt(resource.setrlimit, resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))
        held = []
        try:
            while len(held) < 70_000: held.append(os.open("/dev/null", os.O_RDONLY))
            print("REACHED", len(held))
        except OSError as error: print("bounded", len(held), error.strerror)
        """,
        real_for=("root",),
        host_may_refuse=True,
    ),
    Case(
        id="exhausting/tmp",
        family="exhausting",
        tries="fills a /tmp that lies in memory",
        program=f"""
        written = 0
        for number in range(2 * 1024 // {FILE_MEGABYTES}):
            with open(f"/tmp/fill-{{number}}", "wb") as file:
                try:
                    file.truncate({FILE_MEGABYTES} << 20); os.posix_fallocate(file.fileno(), 0, {FILE_MEGABYTES} << 20)
                    written += {FILE_MEGABYTES}
                except OSError as error: break
        print("REACHED" if written >= 2048 else "bounded", written, "MB", flush=True)
        """,
        harmless=False,
        not_tried_at=(1, 0),
        survives=False,
    ),
    Case(
        id="exhausting/dev-shm",
        family="exhausting",
        tries="fills /dev and /dev/shm, which lie in memory",
        program=f"""
        for folder in ("/dev/shm", "/dev", "/", "/run", HOME):
            written = 0
            for number in range(2 * 1024 // {FILE_MEGABYTES}):
                try:
                    with open(f"{{folder}}/fill-{{number}}", "wb") as file:
                        os.posix_fallocate(file.fileno(), 0, {FILE_MEGABYTES} << 20)
                        written += {FILE_MEGABYTES}
                except OSError as error: break
            print("REACHED" if written >= 2048 else "bounded", folder, written, "MB", flush=True)
        """,
        harmless=False,
        not_tried_at=(1, 0),
        survives=False,
    ),
    Case(
        id="exhausting/core",
        family="exhausting",
        tries="leaves a core with its memory",
        program="""
        child = os.fork()
        if child == 0:
            attempt(resource.setrlimit, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            os.abort()
        os.waitpid(child, 0)
        if glob.glob("core*"): print("REACHED", glob.glob("core*"))
        """,
        floor=True,
        real_for=(),
    ),
]
