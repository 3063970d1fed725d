"""A program that starts a sandbox in the network of a session: `python -I -S session_network.py NETWORK PROGRAM …`.

NETWORK is the descriptor of a network namespace, or NEW_NETWORK. bubblewrap makes a network for the command, unless
this program has entered the other one. So a failure never leads to the network of this machine.
"""

import os
import sys

NEW_NETWORK = -1
OWN_NETWORK_OPTION, _SHARED_NETWORK_OPTION = "--unshare-net", "--share-net"


def wrap_in_network(argv: tuple[str, ...], network: int) -> tuple[str, ...]:
    """A command line that starts bubblewrap in a network. `argv` holds OWN_NETWORK_OPTION."""
    return (sys.executable, "-I", "-S", os.path.abspath(__file__), str(network), *argv)


def main() -> None:
    package = type(sys)("handrail")  # without the imports of handrail/__init__.py
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["handrail"] = package
    network, argv = int(sys.argv[1]), sys.argv[2:]
    if _enter(network):
        argv[argv.index(OWN_NETWORK_OPTION)] = _SHARED_NETWORK_OPTION
    os.execv(argv[0], argv)  # noqa: S606  policy decided on the program, and the sandbox confines it


def _enter(network: int) -> bool:
    from handrail.kernel.process import create_network, enter_network  # noqa: PLC0415  it can be found only now

    try:
        if network != NEW_NETWORK:
            enter_network(network)
            os.close(network)
        elif _can_create():
            create_network()
        else:
            return False
    except OSError:
        return False
    return True


def _can_create() -> bool:
    """Try it in a child. Some systems make the namespaces, and then forbid to use them."""
    from handrail.kernel.process import create_network  # noqa: PLC0415  as above

    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    try:
        create_network()
        os._exit(0)
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
