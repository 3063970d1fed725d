"""Names that lead to an address of this machine itself, one that is out on the internet."""

import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest
from namespaces import PROGRAM
from proxied import PATIENCE

from handrail.sandbox.proxy.connect import is_own

# In a network of its own, in which this machine has a public address.
INSIDE = """
import fcntl, pathlib, socket, struct, sys
from proxied import Proxied, serving
from test_proxy import answer_once

with socket.socket() as any_socket:
    address = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton("8.8.4.4"))
    fcntl.ioctl(any_socket, 0x8916, struct.pack("16s16s8x", b"lo:1", address))
with serving(answer_once, host="0.0.0.0") as server:
    for n, listed in enumerate(((), (f"8.8.4.4:{server.port}",))):
        folder = pathlib.Path(sys.argv[1]) / str(n)
        asked = Proxied(folder, f"a.example:{server.port}", *listed, resolve=lambda *_: ["8.8.4.4"])
        said = asked.get(f"http://a.example:{server.port}/")
        asked.proxy.close()
        print(said.decode().splitlines()[0], server.visits)
"""


def test_the_machines_own_addresses_are_known() -> None:
    assert [is_own(ip_address(text)) for text in ("127.0.0.1", "192.0.2.1")] == [True, False]


@pytest.mark.skipif(PROGRAM is None, reason="bubblewrap is not installed")
def test_a_name_does_not_lead_to_this_machine_by_a_public_address(tmp_path: Path) -> None:
    options = ("--unshare-user", "--unshare-net", "--uid", "0", "--cap-add", "CAP_NET_ADMIN", "--dev-bind", "/", "/")
    done = subprocess.run(
        [PROGRAM or "", *options, sys.executable, "-c", INSIDE, str(tmp_path)],
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("no address can be given here")
    refused, reached = done.stdout.splitlines()
    assert "a.example is listed, but it leads to 8.8.4.4, an address of this machine" in refused
    assert (refused[-1], reached) == ("0", "HTTP/1.1 200 OK 1")
