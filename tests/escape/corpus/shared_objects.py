"""What processes share through the kernel: memory, semaphores, messages, queues."""

from tests.escape.case import Case

_OBJECTS = {
    "memory-read": (
        "reads memory that outsiders share",
        """
        libc.shmat.restype = ctypes.c_void_p
        at = libc.shmat(SHARED_MEMORY, None, 0o10000)
        if at != ctypes.c_void_p(-1).value:
            print(ctypes.string_at(at).decode())
        """,
    ),
    "memory-write": (
        "writes memory that outsiders share",
        """
        libc.shmat.restype = ctypes.c_void_p
        at = libc.shmat(SHARED_MEMORY, None, 0)
        if at != ctypes.c_void_p(-1).value:
            ctypes.memmove(at, b"ESCAPED", 7)
        """,
    ),
    "memory-remove": ("takes away memory that outsiders share", "libc.shmctl(SHARED_MEMORY, 0, None)"),
    "semaphore": ("raises a semaphore of outsiders", "libc.semctl(SEMAPHORE, 0, 16, 7)"),
    "semaphore-remove": ("takes away a semaphore of outsiders", "libc.semctl(SEMAPHORE, 0, 0)"),
    "message-take": (
        "takes a message that is for others",
        r"""
        room = ctypes.create_string_buffer(200)
        libc.msgrcv(MESSAGES, room, ctypes.c_size_t(100), ctypes.c_long(0), 0o4000)
        print(room.raw[8:].rstrip(b"\0").decode())
        """,
    ),
    "message-send": (
        "sends outsiders a message",
        """
        libc.msgsnd(MESSAGES, ctypes.c_char_p((1).to_bytes(8, "little") + b"ESCAPED"), ctypes.c_size_t(7), 0o4000)
        """,
    ),
    "message-remove": ("takes away a queue of outsiders", "libc.msgctl(MESSAGES, 0, None)"),
    "queue-take": (
        "takes a message out of a POSIX queue",
        """
        queue = libc.mq_open(QUEUE.encode(), os.O_RDWR | os.O_NONBLOCK)
        room = ctypes.create_string_buffer(8192)
        if queue >= 0 and libc.mq_receive(queue, room, ctypes.c_size_t(8192), None) > 0:
            print(room.value.decode())
        """,
    ),
    "queue-send": (
        "puts a message into a POSIX queue",
        """
        queue = libc.mq_open(QUEUE.encode(), os.O_RDWR | os.O_NONBLOCK)
        if queue >= 0:
            libc.mq_send(queue, b"ESCAPED", ctypes.c_size_t(7), 0)
        """,
    ),
    "listing": (
        "lists what outsiders share",
        """
        for kind, column, number in (("shm", 1, SHARED_MEMORY), ("sem", 1, SEMAPHORE), ("msg", 1, MESSAGES)):
            if any(line.split()[column] == str(number) for line in open(f"/proc/sysvipc/{kind}").readlines()[1:]):
                print("REACHED", kind, number)
        """,
    ),
}
_MAYBE = {"queue-take", "queue-send"}

CASES = [
    Case(
        id=f"shared/{name}",
        family="shared",
        tries=tries,
        program=lines,
        gap="processes" if name == "listing" else None,
        host_may_refuse=name in _MAYBE,
    )
    for name, (tries, lines) in _OBJECTS.items()
]
