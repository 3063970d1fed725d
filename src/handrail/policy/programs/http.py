"""Programs that read from loopback hosts by http.

In a sandbox these hosts are the network that the session's background processes share. Nothing else is in it. A table
accepts plain reading requests whose answer is printed.
"""

import re

from handrail.policy.network.hosts import is_loopback_url
from handrail.policy.programs.spec import ParsedArgs, ProgramSpec

_PRINTED = frozenset({"-", "/dev/null"})
# Other headers may stand for another method (X-HTTP-Method-Override), or be read from a file (@headers).
_HEADER = re.compile(r"(?:Accept(?:-[A-Za-z]+)?|Authorization|Cache-Control|Host|Origin|Range|User-Agent):[ -~]*", re.I)
# curl reads a format from a file (@format), and writes to the file of %output{name}.
_FORMAT = re.compile(r"(?!@)(?:(?!%output)[^\0])*", re.I)
_CHECKED = {
    **dict.fromkeys(("-H", "--header"), _HEADER),
    **dict.fromkeys(("-w", "--write-out"), _FORMAT),
    **dict.fromkeys(("-X", "--request"), re.compile("GET|HEAD")),
}
_OUTPUTS = ("-o", "--output", "-O", "--output-document")


def _refuse_request(parsed: ParsedArgs) -> str | None:
    """Why a request may change something, or reach another host."""
    # What bash makes of `localhost:8000/items?page=2` begins with the same host. A bracket may stand for another one.
    if any("[" in parsed.operands[place] for place in parsed.globs):
        return "a pattern may become any address"
    odd = next((word for word in parsed.operands if not is_loopback_url(word)), None)
    if odd is not None:
        return f"{odd} is another host"
    for name, value in parsed.options:
        if name in _OUTPUTS and value not in _PRINTED:
            return f"{name} writes a file"
        if name in _CHECKED and not _CHECKED[name].fullmatch(value or ""):
            return f"{name} may do more than read"
    return None


def _refuse_saved_page(parsed: ParsedArgs) -> str | None:
    """wget saves what it reads, unless it is told to print it."""
    if not parsed.has_option("-O", "--output-document", "--spider"):
        return "wget writes a file"
    return _refuse_request(parsed)


TABLES = (
    ProgramSpec(
        name="curl",
        flags="sSfiIvkLgN46#",
        values="moHwXA",
        long_flags="silent show-error fail fail-with-body include head verbose insecure location globoff no-buffer "
        "ipv4 ipv6 compressed no-progress-meter http1.0 http1.1 http2 retry-connrefused retry-all-errors",
        long_values="max-time connect-timeout retry retry-delay retry-max-time max-redirs output header write-out "
        "request user-agent",
        operands="text",
        reject=_refuse_request,
        guards="-q",
        only_loopback=True,
        grantable=False,
        match=(
            "curl localhost:8000",
            "curl -sSf http://127.0.0.1:3000/api/items?page=2",
            "curl -so /dev/null -w '%{http_code}' http://localhost:8000/",
            "curl -sI -X HEAD --retry 5 --retry-connrefused 'http://[::1]:8000/'",
            "curl -s -H 'Accept: application/json' http://app.localhost:5173/",
        ),
        no_match=(
            "curl localhost:8000 -o page.html",
            "curl -d name=x localhost:8000",
            "curl -X DELETE localhost:8000/item/1",
            "curl -T notes.txt localhost:8000",
            "curl -K curlrc localhost:8000",
            "curl -x proxy:3128 localhost:8000",
            "curl --unix-socket /run/docker.sock localhost/info",
            "curl localhost@example.org",
            "curl http://localhost:8000@example.org/",
            "curl http://localhost.example.org",
            "curl http://127.0.0.1.example.org",
            "curl gopher://localhost:6379/_SET",
            "curl -H @secrets localhost:8000",
            "curl -H 'X-HTTP-Method-Override: DELETE' localhost:8000",
            "curl -w '%output{notes.txt}x' localhost:8000",
            "curl localhost:8000 https://example.org",
        ),
    ),
    ProgramSpec(
        name="wget",
        flags="qvSd46",
        values="OTt",
        long_flags="quiet verbose no-verbose server-response spider no-check-certificate retry-connrefused inet4-only "
        "inet6-only",
        long_values="output-document timeout tries header user-agent max-redirect waitretry",
        operands="text",
        reject=_refuse_saved_page,
        guards="--no-config",
        only_loopback=True,
        grantable=False,
        match=("wget -qO- http://localhost:8000/", "wget -q -O - 127.0.0.1:8000", "wget --spider localhost:8000"),
        no_match=(
            "wget localhost:8000",
            "wget -O page.html localhost:8000",
            "wget -qO- --post-data=x localhost:8000",
            "wget -qO- -i urls.txt",
            "wget -qO- http://localhost.example.org",
        ),
    ),
)
