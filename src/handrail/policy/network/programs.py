"""What programs reach that fetch: hosts by default, and the options that name others. Data, and nothing else."""

import msgspec

_PYPI = "pypi.org:443 files.pythonhosted.org:443"
_UPLOAD = "upload.pypi.org:443"
_NPM = "registry.npmjs.org:443"
_CRATES = "index.crates.io:443 static.crates.io:443"
_CONDA = "conda.anaconda.org:443 repo.anaconda.com:443"
_GEMS = "rubygems.org:443 index.rubygems.org:443"
_PUB = "pub.dev:443"
_GITHUB = "api.github.com:443 github.com:443"
_PROXIES = "--proxy --http-proxy --https-proxy"


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """One program, or one sub-command of it. Words are separated by blanks."""

    hosts: str = ""
    """What it reaches where its words name nothing else."""
    instead: str = ""
    """Options whose value names what it reaches in their place; a URL anywhere else is reached besides."""
    without: str = ""
    """Options with which it reaches none of them."""
    proxies: str = ""
    """Options that name a proxy of its own, which nothing leads to from a sandbox."""
    beside: str = ""
    """Options whose value is no address, although it may look like one."""
    bare: int = 0
    """The port of an operand without a scheme, where operands are addresses; 0 where they are not."""
    first: bool = False
    """Whether only one operand is an address: behind a method in capitals, before all others."""


_OF_PIP = Reach(hosts=_PYPI, instead="-i --index-url --pypi-url", without="--no-index", proxies="--proxy")
_OF_UV = Reach(
    hosts=_PYPI, instead="-i --index-url --default-index", without="--no-index --offline", beside="--directory"
)
_OF_PYTHON = Reach(hosts=_PYPI)
_UPLOADING = Reach(hosts=_UPLOAD, instead="-r --repository --repository-url --publish-url --index")
_OF_NPM = Reach(hosts=_NPM, instead="--registry", without="--offline", proxies=_PROXIES)
_OF_YARN = Reach(hosts="registry.yarnpkg.com:443", instead="--registry", without="--offline", proxies=_PROXIES)
_OF_CARGO = Reach(hosts=_CRATES, instead="--index", without="--offline --frozen")
_AT_CRATES = Reach(hosts=f"crates.io:443 {_CRATES}", instead="--index", without="--offline --frozen")
_OF_CONDA = Reach(hosts=_CONDA, without="--offline")
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
    **dict.fromkeys(["poetry", "pipenv", "pdm"], _OF_PYTHON),
    **dict.fromkeys(["poetry publish", "pdm publish", "uv publish"], _UPLOADING),
    "uv python": Reach(hosts="github.com:443 release-assets.githubusercontent.com:443", instead="--mirror"),
    "uv self": Reach(hosts="github.com:443 api.github.com:443 release-assets.githubusercontent.com:443"),
    **dict.fromkeys(["npm", "npx", "pnpm", "pnpx", "bun", "bunx"], _OF_NPM),
    "yarn": _OF_YARN,
    "deno": Reach(hosts=f"jsr.io:443 npm.jsr.io:443 deno.land:443 {_NPM}"),
    "cargo": _OF_CARGO,
    **dict.fromkeys([f"cargo {sub}" for sub in ("publish", "search", "login", "yank", "owner")], _AT_CRATES),
    "go": Reach(hosts="proxy.golang.org:443 sum.golang.org:443"),
    "gem": Reach(hosts=_GEMS, instead="-s --source --host", proxies="-p --http-proxy"),
    "bundle": Reach(hosts=_GEMS, without="--local"),
    "composer": Reach(hosts="repo.packagist.org:443 packagist.org:443 api.github.com:443 codeload.github.com:443"),
    "dotnet": Reach(hosts="api.nuget.org:443", instead="-s --source"),
    "mix": Reach(hosts="repo.hex.pm:443 hex.pm:443 builds.hex.pm:443"),
    "mvn": Reach(hosts="repo.maven.apache.org:443", without="-o --offline"),
    **dict.fromkeys(["conda", "mamba"], _OF_CONDA),
    **dict.fromkeys(["flutter", "dart"], Reach(hosts=_PUB, without="--offline")),
    **dict.fromkeys(["gh", "hub"], Reach(hosts=_GITHUB)),
    "glab": Reach(hosts="gitlab.com:443"),
    "curl": _OF_CURL,
    **dict.fromkeys(["wget", "wget2"], _OF_WGET),
    **dict.fromkeys(["http", "httpie", "xh"], _OF_HTTPIE),
    "https": msgspec.structs.replace(_OF_HTTPIE, bare=443),
}
"""By name, or by name and sub-command, which goes before."""

_SPEAKING_OTHERWISE = """
    ssh scp sftp ssh-copy-id mosh ftp lftp tftp nc ncat netcat telnet socat openssl dig nslookup host drill whois ping
    ping6 traceroute tracepath mtr nmap rsync mail mailx sendmail mutt irssi svn bzr docker podman nerdctl
    docker-compose vagrant ansible ansible-playbook cloudflared ngrok tailscale
"""
NOT_CARRIED = frozenset(_SPEAKING_OTHERWISE.split())
"""Programs that speak no http, or to a service of this machine: no yes lets them through."""
