"""All attacks, by family."""

from tests.escape.case import Case
from tests.escape.corpus import (
    exhausting,
    inherited,
    kernel,
    layers,
    namespaces,
    outliving,
    own_files,
    privileges,
    processes,
    repositories,
    secrets,
    shared_objects,
    sockets,
    writing,
)

_MODULES = (
    writing, secrets, processes, sockets, shared_objects, namespaces, kernel, privileges, inherited, own_files,
    exhausting, outliving, repositories, layers,
)  # fmt: skip

CASES: tuple[Case, ...] = tuple(case for module in _MODULES for case in module.CASES)
FAMILIES: tuple[str, ...] = tuple(dict.fromkeys(case.family for case in CASES))
