"""What is known of a provider before any of its code is imported: its names, its variables, its address."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from handrail.models.connection import ModelConnection


class ApiKey:
    """A key. It is shown nowhere: whoever prints it gets three dots."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The key itself, for the one place that sends it."""
        return self._value

    def __repr__(self) -> str:
        return "…"


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long a provider is waited for, in seconds."""

    connect: float = 10
    silence: float = 300
    """While nothing at all comes. Models that think for long say nothing while they do."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where one model is found."""

    provider: "Provider"
    model: str
    address: str
    key: ApiKey | None
    patience: Timeouts

    @property
    def name(self) -> str:
        """Provider and model."""
        return f"{self.provider.name}:{self.model}"

    @property
    def usual(self) -> bool:
        """Whether the address is the vendor's own."""
        return self.address == self.provider.address


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who has models."""

    name: str
    extra: str
    """What `pip install 'handrail[…]'` names."""
    modules: tuple[str, ...]
    """What is imported for it, in this order."""
    address: str
    connect: Callable[[Endpoint], "ModelConnection"]
    lists: str
    """How to find out which models it has, as a sentence."""
    window: int
    """Tokens, for a model that nothing else is known of."""
    keys: tuple[str, ...] = ()
    """The vendor's variables for the key; the first that is set counts."""
    address_variables: tuple[str, ...] = ()
    """Those for the address."""
    path: str = ""
    """What belongs behind an address that is only a host."""
    beginnings: tuple[str, ...] = ()
    """How the names of its models begin, where nobody else's do."""
    local: bool = False
    """Whether it runs on the user's own machine and needs no key."""
    priced: bool = False
    """Whether its prices are known whatever the address is."""

    def key(self, environment: Mapping[str, str]) -> ApiKey | None:
        """The key that is set."""
        value = find_first_set(self.keys, environment)
        return ApiKey(value) if value else None


def find_first_set(names: tuple[str, ...], environment: Mapping[str, str]) -> str:
    """The value of the first of these variables that says something; empty where none does."""
    return next((value for name in names if (value := environment.get(name, "").strip())), "")
