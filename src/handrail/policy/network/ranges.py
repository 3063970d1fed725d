"""Which addresses are out on the internet, and what the others are: by the registries of special-purpose addresses.

A table of our own, since the one of Python differs from version to version.
"""

from ipaddress import IPv4Network, IPv6Address, IPv6Network

from handrail.policy.network.hosts import Address

_VERSION_4 = tuple(
    (IPv4Network(block), kind)
    for block, kind in (
        ("0.0.0.0/8", "an address of this machine"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "an address between providers and customers"),
        ("127.0.0.0/8", "an address of this machine"),
        ("169.254.0.0/16", "an address of the local link"),
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "an address for examples"),
        ("192.31.196.0/24", "a reserved address"),
        ("192.52.193.0/24", "a reserved address"),
        ("192.88.99.0/24", "an address of a relay between IPv4 and IPv6"),
        ("192.168.0.0/16", "a private address"),
        ("192.175.48.0/24", "a reserved address"),
        ("198.18.0.0/15", "an address for measurements"),
        ("198.51.100.0/24", "an address for examples"),
        ("203.0.113.0/24", "an address for examples"),
        ("224.0.0.0/4", "an address of many machines"),
        ("240.0.0.0/4", "a reserved address"),
    )
)

_GLOBAL_6 = IPv6Network("2000::/3")
_VERSION_6 = tuple(
    (IPv6Network(block), kind)
    for block, kind in (
        ("::/127", "an address of this machine"),
        ("::/96", "an IPv4 address written as an IPv6 one"),
        ("::ffff:0:0/96", "an IPv4 address written as an IPv6 one"),
        ("64:ff9b::/96", "an IPv4 address behind a translator"),
        ("64:ff9b:1::/48", "an IPv4 address behind a translator"),
        ("2001::/23", "an address of a tunnel or a protocol"),
        ("2001:db8::/32", "an address for examples"),
        ("2002::/16", "an IPv4 address behind a tunnel"),
        ("2620:4f:8000::/48", "a reserved address"),
        ("3fff::/20", "an address for examples"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", "an address of the local link"),
        ("fec0::/10", "a private address"),
        ("ff00::/8", "an address of many machines"),
    )
)


def describe_address_range(address: Address) -> str | None:
    """What an address is that is not out on the internet, in words; None where it is."""
    if isinstance(address, IPv6Address):
        found = next((kind for block, kind in _VERSION_6 if address in block), None)
        return found or (None if address in _GLOBAL_6 else "a reserved address")
    return next((kind for block, kind in _VERSION_4 if address in block), None)
