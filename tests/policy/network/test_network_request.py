"""The description of the network that an approval opens."""

import pytest
from tests.policy.deciding import decided

NONE = "it names no known host, so approval opens no host"
NO_SSH = "not opened: ssh does not speak http, so it runs without network"
ASKS = {
    "curl https://example.org": "curl reaches other machines; network access needs approval: example.org:443",
    "curl http://127.0.0.1:8080/ https://10.0.0.7/ 'https://[2606:4700::1]/'": (
        "curl reaches other machines; network access needs approval: 127.0.0.1:8080 (an address of this machine),"
        " 10.0.0.7:443 (a private address), [2606:4700::1]:443"
    ),
    "gh repo clone a https://example.org ssh://b.org": (
        "gh reaches other machines; network access needs approval: api.github.com:443, github.com:443, example.org:443;"
        " not opened: b.org:22 by ssh, which the proxy does not support"
    ),
    "terraform apply": f"terraform reaches other machines; {NONE}",
    "ssh example.org": f"ssh reaches other machines; {NONE}; {NO_SSH}",
    "timeout 5 curl https://example.org": "timeout runs another program; network access needs approval: "
    "example.org:443",
    "sh -c 'ssh a'": f"sh runs the code that it is given; {NONE}; {NO_SSH}",
}


@pytest.mark.parametrize("command", ASKS)
def test_who_is_asked_is_told_what_a_yes_opens(command: str) -> None:
    found = decided(command)
    assert (found.decision, found.reason) == ("confirm", ASKS[command])


def test_what_cannot_be_read_is_told_first() -> None:
    found = decided("echo $(curl https://example.org)")
    assert found.reason.endswith("so handrail cannot analyse it; network access needs approval: example.org:443")


def test_of_several_parts_those_that_reach_out_say_so() -> None:
    parts = decided("make && curl https://example.org && ls").parts
    assert ["example.org:443" in part.reason for part in parts] == [False, True, False]


def test_a_weaker_sandbox_is_told_with_the_hosts() -> None:
    said = "curl reaches other machines; it has no network here; that needs sandbox tier 2: example.org:443"
    assert decided("curl https://example.org", tier=1).reason == said
    open_wide = "network access needs approval, and without a sandbox every host is open: example.org:443"
    assert open_wide in decided("curl https://example.org", tier=0).reason
    assert "every host is open;" in decided("terraform apply", tier=0).reason


def test_where_nobody_is_asked_nothing_is_said_of_hosts() -> None:
    for mode in ("plan", "full"):
        assert "example.org:443" not in decided("curl https://example.org", mode).reason


def test_of_very_many_hosts_every_part_names_the_first() -> None:
    found = decided("; ".join(f"curl https://h{n}.org" for n in range(10)))
    assert len(found.parts) == 10
    assert all(part.reason.endswith("h6.org:443, h7.org:443 and 2 more") for part in found.parts)
