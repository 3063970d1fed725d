"""Ways to talk to somebody outside: sockets of all families, pipes with names."""

from tests.escape.case import Case, User

_ROOT: tuple[User, ...] = ("root",)
_BOTH: tuple[User, ...] = ("root", "ordinary")

_WAYS: dict[str, tuple[str, str, tuple[User, ...], bool]] = {
    "loopback": (
        "connects to a program of this machine",
        'socket.create_connection(("127.0.0.1", PORT), 2)',
        _BOTH,
        False,
    ),
    "loopback-6": ("connects by IPv6", 'socket.create_connection(("::1", PORT6), 2)', _BOTH, True),
    "loopback-mapped": (
        "connects by IPv4 inside IPv6",
        """
        one = socket.socket(socket.AF_INET6)
        one.settimeout(2)
        one.connect(("::ffff:127.0.0.1", PORT))
        """,
        _BOTH,
        True,
    ),
    "loopback-any": (
        "connects to the address that means this machine",
        'socket.create_connection(("0.0.0.0", PORT), 2)',
        _BOTH,
        False,
    ),
    "loopback-range": (
        "connects to another address of the loopback",
        """
        for address in ("127.0.0.1", "127.1", "localhost", "2130706433"):
            attempt(socket.create_connection, (address, PORT), 2)
        """,
        _BOTH,
        False,
    ),
    "not-waiting": (
        "connects without waiting",
        """
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", PORT))
        time.sleep(0.05)
        """,
        _BOTH,
        False,
    ),
    "fast-open": (
        "sends with the connection itself",
        'one = socket.socket(); one.sendto(b"ESCAPED", 0x20000000, ("127.0.0.1", PORT))',
        _BOTH,
        True,
    ),
    "multipath": (
        "connects by several paths",
        """
        one = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
        one.settimeout(2)
        one.connect(("127.0.0.1", PORT))
        """,
        _BOTH,
        True,
    ),
    "from-shell": (
        "connects by the shell's own /dev/tcp",
        """
        run("bash", "-c", f"echo ESCAPED > /dev/tcp/127.0.0.1/{PORT}; echo ESCAPED > /dev/udp/127.0.0.1/{UDP_PORT}")
        """,
        _BOTH,
        False,
    ),
    "from-child": (
        "connects from a child of a child",
        'run("python3", "-c", f"import socket; socket.create_connection((\'127.0.0.1\', {PORT}), 2)")',
        _BOTH,
        False,
    ),
    "datagram": (
        "sends a datagram",
        'socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"ESCAPED", ("127.0.0.1", UDP_PORT))',
        _BOTH,
        False,
    ),
    "datagram-connected": (
        "sends a datagram over a connected socket",
        """
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.connect(("127.0.0.1", UDP_PORT))
        one.send(b"ESCAPED")
        """,
        _BOTH,
        False,
    ),
    "datagram-many": (
        "sends many datagrams by one call",
        """
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.sendmsg([b"ESCAPED"], [], 0, ("127.0.0.1", UDP_PORT))
        """,
        _BOTH,
        False,
    ),
    "own-address": (
        "connects to the machine's address in its network",
        """
        for line in open("/proc/net/fib_trie"):
            parts = line.split()
            if (
                len(parts) > 1
                and parts[0] == "|--"
                and parts[1].count(".") == 3
                and not parts[1].endswith((".0", ".255"))
            ):
                attempt(socket.create_connection, (parts[1], PORT), 1)
        """,
        _BOTH,
        False,
    ),
    "raw": (
        "sends packets that it writes itself",
        """
        one = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
        one.sendto(struct.pack("!HHHH", 9, UDP_PORT, 15, 0) + b"ESCAPED", ("127.0.0.1", 0))
        """,
        _ROOT,
        False,
    ),
    "ping": (
        "sends an ICMP packet",
        """
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
        one.sendto(bytes.fromhex("0800f7ff00000000"), ("127.0.0.1", 0))
        one.settimeout(1)
        print("REACHED" if one.recv(100) and open("/proc/net/dev").read().count(":") > 1 else "refused")
        """,
        (),
        True,
    ),
    "packet": (
        "writes to the wire itself",
        """
        one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)
        print("REACHED AF_PACKET")
        """,
        _ROOT,
        True,
    ),
    "names": (
        "asks the network for a name",
        r"""
        servers = [line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver")]
        for server in servers + ["1.1.1.1"]:
            one = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
            attempt(
                lambda: (
                    one.sendto(b"\x12\x34\1\0\0\1\0\0\0\0\0\0\6escape\4test\0\0\1\0\1", (server, 53)),
                    print("REACHED", server),
                )
            )
        """,
        (),
        True,
    ),
    "far": (
        "sends something to the internet",
        """
        for address in ("1.1.1.1", "169.254.169.254", "192.168.0.1"):
            one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            attempt(lambda: (one.sendto(b"x", (address, 9)), print("REACHED", address)))
        """,
        (),
        True,
    ),
    "outside-path": (
        "connects to a socket by its path",
        "socket.socket(socket.AF_UNIX).connect(SOCKET_OUTSIDE)",
        _BOTH,
        False,
    ),
    "tmp-path": ("connects to a socket in /tmp", "socket.socket(socket.AF_UNIX).connect(SOCKET_IN_TMP)", _BOTH, False),
    "run-path": ("connects to a socket in /run", "socket.socket(socket.AF_UNIX).connect(SOCKET_IN_RUN)", _ROOT, False),
    "shown-path": (
        "connects to a socket in a folder that it is shown read-only",
        "socket.socket(socket.AF_UNIX).connect(SOCKET_SHOWN)",
        _BOTH,
        False,
    ),
    "workspace-path": (
        "connects to a socket in the workspace",
        "socket.socket(socket.AF_UNIX).connect(SOCKET_IN_WORKSPACE)",
        _BOTH,
        False,
    ),
    "workspace-deep": (
        "connects to a socket deep in the workspace",
        "socket.socket(socket.AF_UNIX).connect(SOCKET_DEEP)",
        _BOTH,
        False,
    ),
    "workspace-linked": (
        "connects to a socket of the workspace by another name",
        """
        attempt(os.link, SOCKET_IN_WORKSPACE, "other.sock")
        attempt(lambda: socket.socket(socket.AF_UNIX).connect("other.sock"))
        attempt(os.rename, SOCKET_DEEP, "moved.sock")
        attempt(lambda: socket.socket(socket.AF_UNIX).connect("moved.sock"))
        os.symlink(SOCKET_IN_WORKSPACE, "link.sock")
        attempt(lambda: socket.socket(socket.AF_UNIX).connect("link.sock"))
        """,
        _BOTH,
        False,
    ),
    "by-descriptor": (
        "connects to a socket by /proc/self/fd",
        """
        file = os.open(SOCKET_IN_WORKSPACE, os.O_PATH)
        socket.socket(socket.AF_UNIX).connect(f"/proc/self/fd/{file}")
        """,
        _BOTH,
        False,
    ),
    "by-any-root": (
        "connects to a socket by the root of another process",
        """
        for process in others():
            attempt(lambda: socket.socket(socket.AF_UNIX).connect(f"/proc/{process}/root{SOCKET_IN_TMP}"))
        """,
        _BOTH,
        False,
    ),
    "abstract": (
        "connects to a socket that has a name but no path",
        'socket.socket(socket.AF_UNIX).connect("\\0" + ABSTRACT)',
        _BOTH,
        False,
    ),
    "abstract-datagram": (
        "sends a datagram to a socket without a path",
        'socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"ESCAPED", f"\\0{ABSTRACT}-datagrams")',
        _BOTH,
        False,
    ),
    "agent": (
        "asks the agent that the environment names",
        'socket.socket(socket.AF_UNIX).connect(os.environ.get("SSH_AUTH_SOCK", SOCKET_OUTSIDE))',
        _BOTH,
        False,
    ),
    "services": (
        "asks the services of the machine",
        """
        for path in (
            "/run/docker.sock",
            "/var/run/docker.sock",
            "/run/containerd/containerd.sock",
            "/run/systemd/private",
            "/run/dbus/system_bus_socket",
            "/run/systemd/notify",
            "/run/user/0/bus",
            "/run/user/1000/bus",
            "/tmp/.X11-unix/X0",
            "/run/snapd.socket",
            "/run/udev/control",
        ):
            attempt(lambda: (socket.socket(socket.AF_UNIX).connect(path), print("REACHED", path)))
        """,
        (),
        True,
    ),
    "netlink": (
        "asks the kernel about the machine's network",
        """
        one = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        one.send(struct.pack("IHHII", 20, 18, 0x301, 1, 0) + bytes(4))
        print(
            "REACHED a network"
            if any(
                name != b"lo" and name.encode() in one.recv(65536)
                for name in os.listdir("/sys/class/net")
                if name != "lo"
            )
            else "nothing"
        )
        """,
        _BOTH,
        True,
    ),
    "netlink-all": (
        "opens every kind of netlink but the one for routes",
        """
        for protocol in range(1, 23):
            attempt(
                lambda: (
                    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol),
                    print("REACHED netlink", protocol),
                )
            )
        """,
        _BOTH,
        True,
    ),
    "vsock": (
        "talks to the machine's host",
        'one = socket.socket(40, socket.SOCK_STREAM); print("REACHED AF_VSOCK")',
        _BOTH,
        True,
    ),
    "algorithms": (
        "uses the kernel's ciphers",
        'one = socket.socket(38, socket.SOCK_SEQPACKET); print("REACHED AF_ALG")',
        _BOTH,
        True,
    ),
    "all-families": (
        "opens sockets of all families but the common ones",
        """
        for family in range(1, 47):
            if family in (1, 2, 10, 16):
                continue
            for kind in (1, 2, 3, 5):
                try:
                    socket.socket(family, kind).close()
                    print("REACHED family", family, kind)
                except OSError as error:
                    if error.errno not in (*REFUSALS, errno.EAFNOSUPPORT):
                        print("REACHED family", family, kind, error.strerror)
        """,
        _BOTH,
        True,
    ),
    "pipe-shown": (
        "writes to a pipe in a folder that it is shown read-only",
        'os.write(os.open(PIPE_SHOWN, os.O_WRONLY | os.O_NONBLOCK), b"ESCAPED")',
        _BOTH,
        False,
    ),
    "pipe-outside": (
        "writes to a pipe outside",
        'os.write(os.open(PIPE_OUTSIDE, os.O_WRONLY | os.O_NONBLOCK), b"ESCAPED")',
        _BOTH,
        False,
    ),
    "pass-descriptor": (
        "takes a folder into a child's socket and out again",
        """
        one, other = socket.socketpair()
        socket.send_fds(one, [b"x"], [os.open("/", os.O_PATH)])
        _, files, _, _ = socket.recv_fds(other, 1, 1)
        os.fchdir(files[0])
        attempt(show, "." + OUTSIDE + "/secret.txt")
        """,
        _BOTH,
        False,
    ),
}

_TERMINAL = {
    "type": (
        "types into the runtime's terminal",
        """
        for path in (
            "/dev/tty",
            TERMINAL,
            "/proc/self/fd/0",
            "/proc/self/fd/1",
            "/proc/self/fd/2",
            *(glob.glob("/dev/pts/*") if in_own_pid_namespace() else ()),
        ):

            def typing():
                file = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
                for letter in b"ESC":
                    fcntl.ioctl(file, termios.TIOCSTI, bytes([letter]))

            attempt(typing)
        """,
    ),
    "steal": (
        "takes the runtime's terminal as its own",
        """
        pid = os.fork()
        if pid == 0:
            attempt(os.setsid)

            def taking():
                file = os.open(TERMINAL, os.O_RDWR | os.O_NONBLOCK)
                fcntl.ioctl(file, termios.TIOCSCTTY, 1 if os.getuid() == 0 else 0)
                fcntl.ioctl(file, termios.TIOCSTI, b"E")

            attempt(taking)
            os._exit(0)
        os.waitpid(pid, 0)
        """,
    ),
    "open": (
        "opens the runtime's terminal",
        """
        try:
            file = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY)
            if (
                os.ttyname(file) == TERMINAL
                and os.fstat(file).st_rdev == TERMINAL_DEVICE
                and not in_own_pid_namespace()
            ):
                print("REACHED", TERMINAL)
            elif in_own_pid_namespace():
                fcntl.ioctl(file, termios.TIOCSTI, b"E")
        except OSError as error:
            print("refused", error.strerror)
        """,
    ),
}

CASES = [
    *(
        Case(
            id=f"sockets/{name}",
            family="sockets",
            tries=tries,
            program=lines,
            gap="channels" if name == "pipe-shown" else None,
            real_for=real_for,
            host_may_refuse=differs,
        )
        for name, (tries, lines, real_for, differs) in _WAYS.items()
    ),
    *(
        Case(
            id=f"terminal/{name}",
            family="terminal",
            tries=tries,
            program=lines,
            real_for=() if name == "steal" else _BOTH,
            host_may_refuse=True,
            not_tried_at=(0,),  # the session of a command's own keeps an ordinary user from it there, root not
        )
        for name, (tries, lines) in _TERMINAL.items()
    ),
]
