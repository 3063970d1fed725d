"""The variables that a person's yes to a command is for, and a host on which a command gets just these again."""

import os
from collections.abc import Mapping

import msgspec

from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.host import SandboxHost
from handrail.sandbox.variables.environment import CHOSEN_FROM, build_environment


def list_approved_variables(host: SandboxHost, roots: tuple[str, ...]) -> dict[str, str]:
    """The variables that a person may approve a command with.

    They are the same in every tier: what a tier hides or adds is no news to who was told the tier.
    """
    profile = SandboxProfile(origin="approved", cwd="/", read_only=(), writable=roots)
    return build_environment(profile, host, os.path.exists)


def build_approved_host(host: SandboxHost, variables: Mapping[str, str]) -> SandboxHost:
    """The host with these in the place of what a command's variables would be chosen from here. They are chosen from
    as any others: what no command may get, it does not get by this either."""
    chosen_from = CHOSEN_FROM.union(host.variables)
    rest = {name: value for name, value in host.environ.items() if name not in chosen_from}
    return msgspec.structs.replace(host, home=variables.get("HOME", host.home), environ={**rest, **variables})
