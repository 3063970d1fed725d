"""How a command inside a sandbox comes to the proxy outside: by a port that listens before the command begins."""

PLACE = "/dev/handrail-proxy"
"""Where the proxy's socket is, in every sandbox that has one: in a folder that nobody can change."""
PORT = 3128
"""Where it listens, on the sandbox's own 127.0.0.1."""
ADDRESS = f"http://127.0.0.1:{PORT}"

_NOT_BEGUN = 125
# It loads none of Python's modules but the one it needs: `socket` itself takes as long to load as Python does.
_HAND_OVER = f"""
import _socket, sys
listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
listener.bind(("127.0.0.1", {PORT}))
listener.listen(128)
way = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
way.connect("{PLACE}")
number = listener.fileno().to_bytes(4, sys.byteorder)
way.sendmsg([b"listen"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, number)])
sys.exit(way.recv(1) != b"+")
"""


def build_handover_command(python: str) -> str:
    """What bash runs before the command: it waits until the proxy has the port, and then nothing of it is left."""
    program = python.replace("'", "'\\''")
    failed = f"echo 'handrail: the proxy was not reached, so nothing was run' >&2; exit {_NOT_BEGUN}"
    return f"'{program}' -I -S -c '{_HAND_OVER}' </dev/null >/dev/null 2>&1 || {{ {failed}; }}"
