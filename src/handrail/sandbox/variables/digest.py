"""What the environment of a command is, in short: a person's yes is for that one and no other."""

import hashlib
import os

from handrail.sandbox.confinement import Confinement
from handrail.sandbox.host import Host
from handrail.sandbox.variables.environment import environment_for


def environment_digest(host: Host, roots: tuple[str, ...]) -> str:
    """A digest of the variables that a person may approve a command with.

    It is the same in every tier: what a tier hides or adds is no news to who was told the tier.
    """
    confinement = Confinement(trust="approved", cwd="/", read_only=(), writable=roots)
    variables = environment_for(confinement, host, os.path.exists)
    told = "\0".join(f"{name}={variables[name]}" for name in sorted(variables))
    return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()
