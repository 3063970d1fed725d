"""What tells programs of the proxy: the variables that most of them look at."""

from collections.abc import Iterable

from handrail.policy.network.allowlist import Allowlist
from handrail.sandbox.proxy.inside import ADDRESS


def build_proxy_variables(listed: Iterable[str]) -> dict[str, str]:
    """Variables of a command that has a proxy. What it starts on its own loopback addresses is reached without; where
    one of these is listed, it means this machine's, and only by `localhost` is its own reached."""
    without = ",".join(Allowlist.from_entries(listed).private_loopback())
    names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
    return {
        **dict.fromkeys(names, ADDRESS),
        "no_proxy": without,
        "NO_PROXY": without,
        "NODE_USE_ENV_PROXY": "1",  # without it, Node's own fetch looks at none of these
    }
