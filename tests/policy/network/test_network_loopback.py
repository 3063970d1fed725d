"""Loopback hosts: the session's own network where a sandbox has one, this machine's where it has none."""

import pytest
from tests.policy.programs.support import command

from handrail.policy.config import PolicyConfig
from handrail.policy.decide import decide
from handrail.policy.network.allowlist import Allowlist
from handrail.policy.network.hosts import is_loopback_url
from handrail.policy.network.needs import NetworkNeeds, find_network_needs, reaches_only_loopback
from handrail.policy.parse import parse_command
from handrail.policy.programs.registry import classify
from handrail.protocol.decisions import CommandFact, Decision, DisplayedCommand, Facts, Mode
from handrail.tools.exec.spec import EXEC

OWN = """
    localhost LOCALHOST:80/ http://localhost:8000/a?b=c#d https://app.localhost/ 127.0.0.1:1 127.9.8.7/ 0.0.0.0:8000
    http://[::1]:8000/ [::1]
"""
OTHERS = r"""
    localhost@example.org http://localhost:8000@example.org/ http://localhost.example.org http://127.0.0.1.example.org
    http://localhost\@example.org http://example.org/localhost localhost?@example.org localhost#@example.org
    gopher://localhost:6379/_SET ftp://localhost file:///etc/passwd x=http://localhost/ git+http://localhost/
    http:/localhost 127.1 0x7f.0.0.1 2130706433 [::ffff:127.0.0.1] 0.0.0.1 localhost. localhost:0 localhost:$PORT -
"""


def judge(text: str, mode: Mode = "ask", *, loopback: bool = True, **more: object) -> Decision:
    fact = CommandFact(text=text, loopback=loopback, **{"tier": 3, **more})  # type: ignore[arg-type]
    return decide(EXEC, None, Facts(command=fact), PolicyConfig(mode=mode))


@pytest.mark.parametrize("word", OWN.split())
def test_an_address_that_every_program_reads_as_loopback_is_one(word: str) -> None:
    assert is_loopback_url(word)


@pytest.mark.parametrize("word", [*OTHERS.split(), ""])
def test_an_address_that_a_program_may_read_as_another_host_is_none(word: str) -> None:
    assert not is_loopback_url(word)


@pytest.mark.parametrize("mode", ["plan", "ask", "auto", "full"])
def test_a_plain_reading_request_to_the_own_network_is_allowed_in_every_mode(mode: Mode) -> None:
    for text in ("curl -sS localhost:8000/a | head -1", "timeout 9 curl 127.0.0.1:8000", "wget -qO- localhost:8000"):
        decision = judge(text, mode)
        assert decision.decision == "allow", text
    assert judge("curl localhost:8000", mode).rule == "exec.loopback"


@pytest.mark.parametrize(
    "text",
    [
        "curl localhost:8000 -o page",
        "curl -d a=b localhost:8000",
        "curl --json {} localhost:8000",
        "curl -X POST localhost:8000",
        "curl -T file localhost:8000",
        "curl -K file localhost:8000",
        "curl --unix-socket run.sock localhost",
        "curl -H @file localhost:8000",
        "curl -w @file localhost:8000",
        "wget localhost:8000",
        "http POST localhost:8000 a=b",
    ],
)
def test_a_request_that_may_do_more_is_like_any_unproven_command(text: str) -> None:
    assert [judge(text, mode).decision for mode in ("plan", "ask", "auto", "full")] == [
        "deny",
        "confirm",
        "allow",
        "allow",
    ]
    decision = judge(text)
    assert decision.rule == "exec.loopback"
    assert "may send data to background processes" in decision.reason


@pytest.mark.parametrize(
    "text",
    [
        "curl localhost:8000 https://example.org",
        "curl http://localhost.example.org",
        "curl localhost@example.org",
        "curl -x proxy:3128 localhost:8000",
        "curl --url https://example.org localhost:8000",
        "find . -exec curl localhost:8000 ;",
        "ssh localhost",
    ],
)
def test_a_request_that_names_another_host_asks_in_auto(text: str) -> None:
    assert judge(text, "auto").decision == "confirm" or text.startswith("find")
    assert classify(command(text), loopback=True).effect != "proven"


@pytest.mark.parametrize("text", ["curl localhost:8000", "curl -d x 127.0.0.1:8000", "wget -qO- localhost"])
def test_where_loopback_is_this_machine_a_request_asks_as_for_any_host(text: str) -> None:
    decision = judge(text, "auto", loopback=False)
    assert (decision.decision, decision.rule) == ("confirm", "exec.network")
    assert judge(text, tier=0).decision == "confirm"


def test_a_server_and_its_request_in_one_command_do_not_ask_in_auto() -> None:
    text = "python3 -m http.server 8000 & curl localhost:8000"
    seen = (
        DisplayedCommand(words=("python3", "-m", "http.server", "8000"), text="python3 -m http.server 8000"),
        DisplayedCommand(words=("curl", "localhost:8000"), text="curl localhost:8000"),
    )
    assert judge(text, "auto", seen=seen).decision == "allow"
    assert judge(text, "auto", seen=seen, loopback=False).decision == "confirm"
    posted = (DisplayedCommand(words=("curl", "-d", "x", "localhost:8000")),)
    assert judge("true & curl -d x localhost:8000", "auto", seen=posted).decision == "allow"
    unknown = (DisplayedCommand(words=("curl", "localhost:$PORT")),)
    assert judge("true & curl localhost:$PORT", "auto", seen=unknown).decision == "confirm"


def test_loopback_is_no_host_to_open_where_it_is_the_own_network() -> None:
    parsed = parse_command("curl -d x localhost:1 127.0.0.1:2 example.org")
    own = find_network_needs(parsed, loopback=True)
    assert (own.hosts, own.unreachable, own.loopback) == (("example.org:80",), (), True)
    machine = find_network_needs(parsed)
    assert (machine.hosts, machine.loopback) == (("127.0.0.1:2", "example.org:80"), False)
    assert machine.unreachable == ("localhost:1 is the sandbox's own; this machine would be 127.0.0.1:1",)
    assert find_network_needs(parse_command("ls"), loopback=True) == NetworkNeeds()


def test_only_loopback_means_every_host_that_is_named() -> None:
    assert reaches_only_loopback(("curl", "-d", "x", "localhost:1", "127.0.0.1:2"))
    assert not reaches_only_loopback(("curl", "localhost:1", "example.org"))
    assert not reaches_only_loopback(("curl",))
    assert not reaches_only_loopback(("npm", "install"))
    assert not reaches_only_loopback(("git", "fetch"))


def test_a_pattern_in_the_path_keeps_the_host_and_a_bracket_may_not() -> None:
    assert classify(command("curl localhost:8000/items?page=2"), loopback=True).effect == "proven"
    assert classify(command("curl localhost:8000/item[12]"), loopback=True).effect == "network"


def test_only_a_request_makes_a_command_need_sockets() -> None:
    assert parse_command("curl localhost", loopback=True).reads_loopback
    assert not parse_command("ls | head", loopback=True).reads_loopback
    assert parse_command("curl localhost | head", loopback=True).bash_text == "'curl' '-q' 'localhost' | 'head'"
    assert not parse_command("curl localhost").is_read_only


@pytest.mark.parametrize(
    ("entries", "lists"),
    [((), False), (("example.org", "10.0.0.0/8:1"), False), (("127.0.0.1:80",), True), (("[::1]:1",), True)],
)
def test_settings_that_list_an_address_of_this_machine_say_so(entries: tuple[str, ...], lists: bool) -> None:
    assert Allowlist.from_entries(entries).lists_loopback is lists
