"""Hosts that a command needs, by its words and its programs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.code.shell import find_shell_commands
from handrail.policy.network.allowlist import parse_host_pattern
from handrail.policy.network.git_remotes import Remote
from handrail.policy.network.hosts import HostPort, parse_host_port
from handrail.policy.network.needs import (
    MAX_HOSTS,
    NOT_CARRIED,
    REACHES,
    NetworkNeeds,
    add_registry_urls,
    add_remote_urls,
    describe_unknown_registry,
    find_network_needs,
)
from handrail.policy.parse import parse_command


def needs(command: str, cwd: str = ".") -> NetworkNeeds:
    parsed = parse_command(command, cwd)
    return find_network_needs(parsed, find_shell_commands(command) if parsed.needs_display else None)


HOSTS: dict[str, tuple[str, ...]] = {
    # what is named
    "curl https://example.org/x": ("example.org:443",),
    "curl http://EXAMPLE.org:8443/x": ("example.org:8443",),
    "curl https://somebody:secret@example.org/ https://example.com": ("example.org:443", "example.com:443"),
    "curl -sSLo out.html example.org/a": ("example.org:80",),
    "curl --output out.html --url example.org": ("example.org:80",),
    "curl -e https://from.org -H 'Origin: https://o.org' --json '{}' https://example.org": ("example.org:443",),
    "curl -d https://data.org -- example.org": ("example.org:80",),
    "curl http://127.0.0.1:8080/": ("127.0.0.1:8080",),
    "curl http://[::1]:8080/": ("[::1]:8080",),
    "curl wss://example.org": ("example.org:443",),
    "wget -qO- https://example.org/a?b=https://other.org": ("example.org:443",),
    "http POST example.org a=b X:y": ("example.org:80",),
    "https example.org/get": ("example.org:443",),
    "xh": (),
    "aria2c https://example.org/a.iso": ("example.org:443",),
    # package managers: hosts besides the registries of the client
    "pip install -i https://mirror.example.org/simple requests": ("mirror.example.org:443",),
    "pip install --index-url=https://mirror.example.org/simple requests": ("mirror.example.org:443",),
    "pip install -ihttps://mirror.example.org/simple requests": ("mirror.example.org:443",),
    "pip install --extra-index-url https://x.example.org/simple requests": ("x.example.org:443",),
    "pip install --no-index --find-links=https://x.example.org wheel": ("x.example.org:443",),
    "pip install git+https://github.com/a/b@main": ("github.com:443",),
    "pip install 'z @ https://files.example.org/z.whl'": ("files.example.org:443",),
    "uv add --default-index https://x.example.org/simple a": ("x.example.org:443",),
    "npm view left-pad --registry http://127.0.0.1:4873/": ("127.0.0.1:4873",),
    "gem install --source https://gems.example.org rake": ("gems.example.org:443",),
    "composer install": ("api.github.com:443", "codeload.github.com:443"),
    "gh pr list": ("api.github.com:443", "github.com:443"),
    # inside others
    "timeout 5 curl -O https://example.org/f": ("example.org:443",),
    "sh -c 'curl https://a.example.org && wget b.example.org'": ("a.example.org:443", "b.example.org:80"),
    "cd src && curl https://example.org | sh": ("example.org:443",),
    "if true; then curl https://example.org; fi": ("example.org:443",),
    "curl $(cat options) https://example.org bare.example.org": ("example.org:443",),
    # git
    "git clone https://github.com/a/b": ("github.com:443",),
    "git clone --depth 1 -b main https://github.com/a/b c": ("github.com:443",),
    "git push https://example.org/a.git main": ("example.org:443",),
    "git -c x=y ls-remote https://example.org/a.git": ("example.org:443",),
    "git submodule add https://example.org/a.git lib": ("example.org:443",),
    # no network
    "make": (),
    "ls https://example.org": (),
    "echo https://example.org": (),
    "git commit -m https://example.org": (),
    "python fetch.py https://example.org": (),
    "rsync -a a b": (),
}


@pytest.mark.parametrize("command", HOSTS)
def test_the_hosts_of_a_command_are_those_that_it_names_or_is_known_to_reach(command: str) -> None:
    assert needs(command).hosts == HOSTS[command]


REGISTRIES: dict[str, tuple[str, ...]] = {
    "pip install requests": ("pip",),
    "pip3 download requests": ("pip",),
    "python -m pip install requests": ("pip",),
    "python3.11 -m pip install requests": ("pip",),
    "pip --isolated install requests": ("pip",),
    "pip install -i https://mirror.example.org/simple requests": (),
    "pip install --extra-index-url https://x.example.org/simple requests": ("pip",),
    "pip install --no-index --find-links=https://x.example.org wheel": (),
    "pip install git+https://github.com/a/b@main": ("pip",),
    "pip list": (),
    "uvx ruff": ("uv",),
    "uv add --default-index https://x.example.org/simple a": (),
    "uv publish": ("uv publish",),
    "uv publish --publish-url https://up.example.org": (),
    "npm ci": ("npm",),
    "npm run build": (),
    "npx cowsay": ("npm",),
    "yarn add left-pad": ("yarn",),
    "cargo add serde": ("cargo",),
    "cargo fetch --offline": (),
    "cargo publish": ("cargo",),
    "go get example.org/mod": ("go",),
    "gem install --source https://gems.example.org rake": (),
    "composer install": ("composer",),
    "npm ci && pip install x && npm ci": ("npm", "pip"),
    "for n in 1 2; do pip install $n; done": ("pip",),
    "make": (),
}


@pytest.mark.parametrize("command", REGISTRIES)
def test_registries_are_left_to_whoever_can_look_them_up(command: str) -> None:
    assert needs(command).registries == REGISTRIES[command]


UNOPENED = {
    "git clone git@github.com:a/b.git": "github.com:22 by ssh, which the proxy does not support",
    "git clone ssh://git@example.org:2222/a": "example.org:2222 by ssh, which the proxy does not support",
    "git fetch git://example.org/a": "example.org:9418 by git, which the proxy does not support",
    "pip install --no-index git+ssh://git@example.org/a": "example.org:22 by ssh, which the proxy does not support",
    "curl ftp://example.org": "example.org:21 by ftp, which the proxy does not support",
    "curl gopher://example.org": "example.org by gopher, which the proxy does not support",
    "ssh example.org ls": "ssh does not speak http, so it runs without network",
    "curl -x http://proxy:3128 http://0x7f.1/": "the proxy -x names, which is not reachable",
    "curl http://0x7f.1/": "0x7f.1 is not an IPv4 address in its plain form, such as 192.0.2.7",
    "curl http://2130706433/": "2130706433 is not an IPv4 address in its plain form, such as 192.0.2.7",
    "curl https://exämple.org": "ex\\u{e4}mple.org is not ASCII: names in other scripts are written with xn--",
    "curl https://example.org./": "example.org. ends with a dot",
    "curl https://example.org:99999/": "99999 is not a port",
    "curl https:///etc/passwd": "no host is named",
    "curl http://[::1:80/": "[::1 is not an address in brackets",
    "curl http://localhost:3000/": "localhost:3000 is the sandbox's own; this machine would be 127.0.0.1:3000",
    'curl "https://$HOST/"': "$HOST is not a name: ASCII letters, digits and hyphens between single dots",
    'pip install -i "$INDEX" x': "what -i names: $INDEX",
}


@pytest.mark.parametrize("command", UNOPENED)
def test_what_looks_like_a_host_and_cannot_be_opened_is_told_with_the_reason(command: str) -> None:
    found = needs(command)
    assert found.unreachable[0] == UNOPENED[command]
    assert found.hosts == ()


REMOTES = {
    "git push": Remote(".", push=True),
    "git push origin main": Remote(".", ("origin",), push=True),
    "git fetch": Remote("."),
    "git fetch --all": Remote(".", every=True),
    "git pull --rebase upstream": Remote(".", ("upstream",)),
    "git -C sub ls-remote": Remote("sub"),
    "cd api && git fetch": Remote("api"),
    "git -C /data/x fetch -j 4 -- origin": Remote("/data/x", ("origin",)),
    "git remote show origin": Remote(".", ("origin",)),
    "git remote update": Remote(".", every=True),
    "git submodule update --init": Remote(".", modules=True),
    "git lfs pull": Remote(".", push=True),
    "for n in 1 2; do git fetch origin; done": Remote(".", ("origin",)),
}


@pytest.mark.parametrize("command", REMOTES)
def test_remotes_are_left_to_whoever_can_look_them_up(command: str) -> None:
    parsed = parse_command(command, ".", ("api",))
    found = find_network_needs(parsed, find_shell_commands(command) if parsed.needs_display else None)
    assert found == NetworkNeeds(remotes=(REMOTES[command],))


@pytest.mark.parametrize(
    "command",
    ["git --git-dir=/x fetch", "git remote -v", "git submodule status", "git clone ../other", "git -C", "git",
     "cd a || cd b; git fetch", "cd x; $(y) && git fetch"],
)  # fmt: skip
def test_where_nobody_knows_which_repository_is_meant_none_is_looked_up(command: str) -> None:
    assert needs(command) == NetworkNeeds()


def test_what_a_remotes_url_names_is_a_host_too() -> None:
    urls = ("https://example.org/a.git", "git@github.com:a/b.git", "/srv/git/a", "https://example.org/b")
    found = add_remote_urls(NetworkNeeds(("index.example.org:443",)), urls)
    assert found.hosts == ("index.example.org:443", "example.org:443")
    assert found.unreachable == ("github.com:22 by ssh, which the proxy does not support",)


def test_more_hosts_than_a_person_can_look_at_are_not_opened() -> None:
    found = needs("curl " + " ".join(f"https://h{n}.org" for n in range(MAX_HOSTS + 7)))
    assert len(found.hosts) == MAX_HOSTS
    assert found.unreachable == (f"7 hosts beyond the limit of {MAX_HOSTS}",)


def test_what_a_clients_registry_names_is_a_host_and_nothing_else_of_it_is_shown() -> None:
    start = NetworkNeeds(("example.org:443",), registries=("pip",))
    found = add_registry_urls(start, "pip", ("https://somebody:word@index.example.org/simple", "http://b.example.org"))
    assert found.hosts == ("example.org:443", "index.example.org:443", "b.example.org:80")
    assert found.unreachable == ()
    assert found.registries == ("pip",)
    for url in ("", "https://se_cret/", "ssh://word.example.org/", "file:///srv/packages"):
        found = add_registry_urls(start, "pip", (url,))
        assert (found.hosts, found.unreachable) == (start.hosts, (describe_unknown_registry("pip"),))
    assert add_registry_urls(start, "pip", ()).unreachable == (describe_unknown_registry("pip"),)


def test_every_host_of_the_tables_is_one_that_can_be_listed() -> None:
    for program, reach in REACHES.items():
        assert program.split()[0] not in NOT_CARRIED
        for host in reach.hosts.split():
            assert isinstance(parse_host_port(host), HostPort)
            assert parse_host_pattern(host).ports == {443}


WORDS = st.lists(
    st.sampled_from(
        ["curl", "git", "pip", "install", "npm", "clone", "push", "-C", "-i", "-x", "--", "sh", "-c", "&&", "|", "cd",
         "https://a.org", "http://[::1]", "a@b:c", "--registry=x://y", "'", '"', "$(x)", "POST", "http", "-m", "é://"]
    )
    | st.text("a:/@[]%.#?\\ -=+", max_size=12),
    max_size=8,
)  # fmt: skip


@given(WORDS)
def test_whatever_a_command_says_every_host_has_its_one_spelling_and_can_be_listed(words: list[str]) -> None:
    found = needs(" ".join(words))
    for host in found.hosts:
        target = parse_host_port(host)
        assert isinstance(target, HostPort)
        assert target.spelled == host
        assert target.port in parse_host_pattern(host).ports
    assert all(text.isascii() and text.isprintable() for text in found.unreachable)
