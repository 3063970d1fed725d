"""Hosts that a command needs: named by its words, or known for its programs.

An approval opens exactly these. So an uncertain host is never listed as one, but shown as unreachable with its word.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from handrail.policy.network.git_remotes import Remote, find_git_reach
from handrail.policy.network.hosts import (
    HostMention,
    InvalidHost,
    describe_address_range,
    parse_bare_mention,
    parse_host_port,
    parse_ssh_mention,
    parse_url_mention,
    render_untrusted,
)
from handrail.policy.parse import ParsedCommand, expand_inner_commands, find_start_folder
from handrail.policy.programs.classes import FETCHING
from handrail.policy.programs.options import split_options
from handrail.policy.programs.registry import classify_words
from handrail.policy.programs.spec import to_base_name
from handrail.protocol.decisions import CommandFact, DisplayedCommand


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """What a program or a sub-command reaches. Hosts and options are separated by blanks."""

    hosts: str = ""
    """Hosts that it reaches by default."""
    registry: str = ""
    """The client whose configured registries it reaches by default."""
    instead: str = ""
    """Options whose value replaces these. A URL in any other word is reached as well."""
    without: str = ""
    """Options with which it reaches none of these."""
    proxies: str = ""
    """Options that name another proxy, which the sandbox cannot reach."""
    beside: str = ""
    """Options whose value may look like an address and is none."""
    bare: int = 0
    """The default port of operands without a scheme. 0 if operands are no addresses."""
    first: bool = False
    """Whether only the first operand is an address, or the second after an HTTP method."""


_OF_PIP = Reach(registry="pip", instead="-i --index-url --pypi-url", without="--no-index", proxies="--proxy")
_OF_UV = Reach(
    registry="uv", instead="-i --index-url --default-index", without="--no-index --offline", beside="--directory"
)
_UPLOADS = "-r --repository --repository-url --publish-url --index"
_OF_NPM = Reach(registry="npm", instead="--registry", without="--offline", proxies="--proxy --http-proxy --https-proxy")
_OF_HTTPIE = Reach(
    bare=80,
    first=True,
    proxies="--proxy",
    beside="-o --output -a --auth -A --auth-type --session --session-read-only --timeout --max-redirects -p --print "
    "--verify --cert --cert-key --ssl --ciphers --style -s --boundary",
)
_OF_CURL = Reach(
    bare=80,
    proxies="-x --proxy --preproxy --socks4 --socks4a --socks5 --socks5-hostname",
    beside="-o -d -H -A -e -u -X -b -c -T -F -m -w -K -E -r -Y -y -z -C -D -P -Q -t -U --output --data --data-raw "
    "--data-binary --data-ascii --data-urlencode --json --header --user-agent --referer --user --request --cookie "
    "--cookie-jar --upload-file --form --form-string --max-time --connect-timeout --write-out --config --cert --cacert "
    "--capath --key --cert-type --key-type --range --retry --retry-delay --retry-max-time --max-redirs --output-dir "
    "--resolve --connect-to --interface --limit-rate --max-filesize --proto --proto-default --proto-redir --tls-max "
    "--ciphers --tls13-ciphers --netrc-file --unix-socket --abstract-unix-socket --time-cond --dump-header --trace "
    "--trace-ascii --stderr --aws-sigv4 --oauth2-bearer --noproxy --proxy-user --proxy-header --parallel-max --rate "
    "--dns-servers --local-port --keepalive-time --speed-limit --speed-time --url-query --variable --pass "
    "--create-file-mode --happy-eyeballs-timeout-ms --expect100-timeout --continue-at --quote --pinnedpubkey",
)
_OF_WGET = Reach(
    bare=80,
    beside="-O -o -a -t -T -w -Q -e -U -P -A -R -D -I -X -l -i -B --output-document --output-file --append-output "
    "--tries --timeout --wait --header --user --password --http-user --http-password --user-agent --post-data "
    "--post-file --body-data --body-file --method --directory-prefix --referer --load-cookies --save-cookies "
    "--execute --base --input-file --level --accept --reject --domains --exclude-domains --quota --limit-rate "
    "--ca-certificate --certificate --private-key",
)

REACHES: dict[str, Reach] = {
    **dict.fromkeys(["pip", "pip3", "pipx"], _OF_PIP),
    **dict.fromkeys(["uv", "uvx"], _OF_UV),
    **dict.fromkeys(["poetry", "pipenv", "pdm"], Reach(registry="pip")),
    **{client: Reach(registry=client) for client in ("deno", "go", "mix")},
    **{name: Reach(registry=name, instead=_UPLOADS) for name in ("poetry publish", "pdm publish", "uv publish")},
    "uv python": Reach(hosts="github.com:443 release-assets.githubusercontent.com:443", instead="--mirror"),
    "uv self": Reach(hosts="github.com:443 api.github.com:443 release-assets.githubusercontent.com:443"),
    **dict.fromkeys(["npm", "npx", "pnpm", "pnpx", "bun", "bunx"], _OF_NPM),
    "yarn": msgspec.structs.replace(_OF_NPM, registry="yarn"),
    "cargo": Reach(registry="cargo", instead="--index", without="--offline --frozen"),
    "gem": Reach(registry="gem", instead="-s --source --host", proxies="-p --http-proxy"),
    "bundle": Reach(registry="bundle", without="--local"),
    "composer": Reach(registry="composer", hosts="api.github.com:443 codeload.github.com:443"),
    "dotnet": Reach(registry="dotnet", instead="-s --source"),
    "mvn": Reach(registry="mvn", without="-o --offline"),
    **{client: Reach(registry=client, without="--offline") for client in ("conda", "mamba", "flutter", "dart")},
    **dict.fromkeys(["gh", "hub"], Reach(hosts="api.github.com:443 github.com:443")),
    "glab": Reach(hosts="gitlab.com:443"),
    "curl": _OF_CURL,
    **dict.fromkeys(["wget", "wget2"], _OF_WGET),
    **dict.fromkeys(["http", "httpie", "xh"], _OF_HTTPIE),
    "https": msgspec.structs.replace(_OF_HTTPIE, bare=443),
}
"""By name, or by name and sub-command, which takes precedence."""

_OTHER_PROTOCOLS = """
    ssh scp sftp ssh-copy-id mosh ftp lftp tftp nc ncat netcat telnet socat openssl dig nslookup host drill whois ping
    ping6 traceroute tracepath mtr nmap rsync mail mailx sendmail mutt irssi svn bzr docker podman nerdctl
    docker-compose vagrant ansible ansible-playbook cloudflared ngrok tailscale
"""
NOT_CARRIED = frozenset(_OTHER_PROTOCOLS.split())
"""Programs that do not speak http, or that talk to a local service. No approval gives them network."""


Words = tuple[str, ...]

MAX_HOSTS = 50
"""Hosts that one approval can open."""
_MAX_UNREACHABLE = 10
_METHOD = re.compile(r"[A-Z]+")
_VERSION = re.compile(r"(?<=[a-z])[0-9][0-9.]*\Z")
_ANY = Reach()


class NetworkNeeds(msgspec.Struct, frozen=True):
    hosts: tuple[str, ...] = ()
    """`example.org:443`"""
    unreachable: tuple[str, ...] = ()
    """Words that look like a host and cannot be opened, each with the reason."""
    remotes: tuple[Remote, ...] = ()
    """Remotes of repositories, whose URLs the caller looks up."""
    registries: tuple[str, ...] = ()
    """Clients whose configured registries the caller looks up: `pip`"""
    loopback: bool = False
    """Whether it names a loopback host, and these are no hosts to open."""


def find_network_needs(
    command: ParsedCommand, displayed: tuple[DisplayedCommand, ...] | None = None, *, loopback: bool = False
) -> NetworkNeeds:
    """The needs of a command. `displayed`: the commands that the display parser found in it.

    `loopback`: whether loopback hosts are the session's own network.
    """
    read = [(words, folder, True) for words, folder in _list_steps(command)]
    read += [(words, folder, False) for words, folder in _list_seen(displayed or (), command.cwd)]
    reach = [one for words, folder, literal in read for one in _find_reach(words, folder, literal=literal)]
    remotes = tuple(dict.fromkeys(one for one in reach if isinstance(one, Remote)))
    registries = tuple(dict.fromkeys(one for one in reach if isinstance(one, str)))
    mentions = [one for one in reach if isinstance(one, HostMention)]
    own = [one for one in mentions if loopback and one.is_loopback]
    needs = NetworkNeeds(remotes=remotes, registries=registries, loopback=bool(own))
    return _add_mentions(needs, [one for one in mentions if one not in own])


def reaches_only_loopback(words: Words) -> bool:
    """Whether loopback hosts are all that a command reaches, by its words."""
    reach = list(_find_reach(words, None, literal=True))
    return bool(reach) and all(isinstance(one, HostMention) and one.is_loopback for one in reach)


def add_remote_urls(needs: NetworkNeeds, urls: Iterable[str]) -> NetworkNeeds:
    mentions = [parse_url_mention(url) or parse_ssh_mention(url) for url in urls]
    return _add_mentions(needs, [one for one in mentions if one is not None])


def add_registry_urls(needs: NetworkNeeds, client: str, urls: Iterable[str]) -> NetworkNeeds:
    """The needs with the hosts of a client's registries. A URL may hold a password, so none is shown."""
    hosts = [mention.host if (mention := parse_url_mention(url)) else "" for url in urls]
    unknown = HostMention(unreachable=describe_unknown_registry(client))
    return _add_mentions(needs, [HostMention(host) if host else unknown for host in hosts or [""]])


def describe_unknown_registry(client: str) -> str:
    """What a request says if no file names the registry of a client."""
    return f"the registry of {client} is not known; list its host in network.allow"


def _add_mentions(needs: NetworkNeeds, mentions: list[HostMention]) -> NetworkNeeds:
    """Each host once, and no more than a person can read."""
    hosts = tuple(dict.fromkeys([*needs.hosts, *(one.host for one in mentions if one.host)]))
    unreachable = tuple(dict.fromkeys([*needs.unreachable, *(one.unreachable for one in mentions if one.unreachable)]))
    if len(hosts) > MAX_HOSTS:
        unreachable = (f"{len(hosts) - MAX_HOSTS} hosts beyond the limit of {MAX_HOSTS}", *unreachable)
    return msgspec.structs.replace(needs, hosts=hosts[:MAX_HOSTS], unreachable=unreachable[:_MAX_UNREACHABLE])


def _list_steps(command: ParsedCommand) -> Iterator[tuple[Words, str | None]]:
    """The unproven simple commands, each with its folder, or None if that is uncertain."""
    for step in command.steps:
        if step.classification.effect != "proven":
            folder = step.folders[0] if len(step.folders) == 1 else None
            yield step.words, folder
            yield from ((one.words, folder) for one in step.inner if not _is_same_git_command(one.words, step.words))


def _list_seen(seen: tuple[DisplayedCommand, ...], cwd: str) -> Iterator[tuple[Words, str | None]]:
    folder = find_start_folder(seen, cwd)
    for outer in seen:
        yield outer.words, folder
        inner = list(expand_inner_commands((outer,)))[1:]
        yield from ((one.words, folder) for one in inner if not _is_same_git_command(one.words, outer.words))


def _is_same_git_command(inner: Words, outer: Words) -> bool:
    """Whether an inner command is the outer git command without its global options."""
    return inner[:1] == ("git",) and to_base_name(outer[0]) == "git" and outer[-len(inner) + 1 :] == inner[1:]


def _find_reach(words: Words, folder: str | None, *, literal: bool) -> Iterator[HostMention | Remote | str]:
    """`literal`: the words have no expansions, so a word without a scheme can be an address."""
    if not words or not words[0]:
        return
    name = to_base_name(words[0])
    if name == "git":
        yield from find_git_reach(words, folder)
    elif _needs_network(name, words):
        yield from _find_program_hosts(name, words[1:], literal=literal)


def _needs_network(name: str, words: Words) -> bool:
    """Whether a command needs the network, even if options precede its sub-command."""
    if classify_words(words).effect == "network":
        return True
    fetching = FETCHING.get(_VERSION.sub("", name), "").split()
    return next((word for word in words[1:] if not word.startswith("-") and "://" not in word), "") in fetching


def _find_program_hosts(name: str, rest: Words, *, literal: bool) -> Iterator[HostMention | str]:
    if rest[:2] == ("-m", "pip"):
        name, rest = "pip", rest[2:]
    if name in NOT_CARRIED:
        yield HostMention(unreachable=f"{name} does not speak http, so it runs without network")
        return
    plain = name if name in REACHES else _VERSION.sub("", name)
    reach = REACHES.get(f"{plain} {rest[0] if rest else ''}") or REACHES.get(plain, _ANY)
    yield from _find_hosts(reach, rest, literal=literal)


def _find_hosts(reach: Reach, rest: Words, *, literal: bool) -> Iterator[HostMention | str]:
    """The hosts, and the client whose registries are reached."""
    valued = {*reach.instead.split(), *reach.proxies.split(), *reach.beside.split()}
    arguments = list(split_options(rest, valued))
    options = [(argument.option, argument.value) for argument in arguments if argument.option]
    operands = [argument.word for argument in arguments if not argument.option]
    instead = [value for option, value in options if option in reach.instead.split()]
    if not instead and not {option for option, _ in options} & set(reach.without.split()):
        yield from map(HostMention, reach.hosts.split())
        yield from filter(None, [reach.registry])
    for option, value in options:
        if option in reach.proxies.split():
            yield HostMention(unreachable=f"the proxy {option} names, which is not reachable")
        elif option in reach.instead.split():
            yield parse_url_mention(value) or HostMention(unreachable=f"what {option} names: {render_untrusted(value)}")
        elif option not in reach.beside.split():
            yield from filter(None, [parse_url_mention(value)])
    yield from _find_operand_hosts(reach, operands, literal=literal)


def _find_operand_hosts(reach: Reach, operands: list[str], *, literal: bool) -> Iterator[HostMention]:
    if not reach.bare or not literal:
        yield from filter(None, map(parse_url_mention, operands))
        return
    if reach.first:
        operands = operands[1:2] if operands and _METHOD.fullmatch(operands[0]) else operands[:1]
    yield from (parse_bare_mention(word, reach.bare) for word in operands)


MIN_NETWORK_TIER = 2
"""The lowest sandbox tier that can open single hosts."""
_MAX_NAMED_HOSTS = 8


def describe_network_access(fact: CommandFact) -> str:
    """What the approval of a command that needs the network opens, for the person who decides."""
    unopened = f"; not opened: {'; '.join(fact.unopened)}" if fact.unopened else ""
    if fact.tier == 0:
        return f"network access needs approval, and without a sandbox every host is open{_join_hosts(fact)}"
    if not fact.hosts:
        return f"it names no known host, so approval opens no host{unopened}"
    if fact.tier < MIN_NETWORK_TIER:
        return f"it has no network here; that needs sandbox tier {MIN_NETWORK_TIER}{_join_hosts(fact)}"
    return f"network access needs approval{_join_hosts(fact)}{unopened}"


def render_host(host: str) -> str:
    """A host for people: `10.0.0.7:443 (a private address)`."""
    target = parse_host_port(host)
    kind = None if isinstance(target, InvalidHost) or target.address is None else describe_address_range(target.address)
    return f"{host} ({kind})" if kind else host


def _join_hosts(fact: CommandFact) -> str:
    """The first hosts only, because every part of the command repeats them. The request lists all."""
    more = f" and {len(fact.hosts) - _MAX_NAMED_HOSTS} more" if len(fact.hosts) > _MAX_NAMED_HOSTS else ""
    return f": {', '.join(map(render_host, fact.hosts[:_MAX_NAMED_HOSTS]))}{more}" if fact.hosts else ""
