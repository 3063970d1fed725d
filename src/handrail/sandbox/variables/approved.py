"""The variables that a person's yes to a command is for, and a host on which a command gets just these again."""

import os
from collections.abc import Mapping

import msgspec

from handrail.sandbox.confinement import Confinement
from handrail.sandbox.host import Host
from handrail.sandbox.variables.environment import CHOSEN_FROM, environment_for


def approved_variables(host: Host, roots: tuple[str, ...]) -> dict[str, str]:
    """The variables that a person may approve a command with.

    They are the same in every tier: what a tier hides or adds is no news to who was told the tier.
    """
    confinement = Confinement(trust="approved", cwd="/", read_only=(), writable=roots)
    return environment_for(confinement, host, os.path.exists)


def host_as_approved(host: Host, variables: Mapping[str, str]) -> Host:
    """The host with these in the place of what a command's variables would be chosen from here. They are chosen from
    as any others: what no command may get, it does not get by this either."""
    chosen_from = CHOSEN_FROM.union(host.variables)
    rest = {name: value for name, value in host.environ.items() if name not in chosen_from}
    return msgspec.structs.replace(host, home=variables.get("HOME", host.home), environ={**rest, **variables})
