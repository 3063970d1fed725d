"""Imports a provider's package, which takes a second or two: beforehand and beside other work where that can be."""

import threading
from importlib import import_module
from importlib.util import find_spec

from handrail.models.model import ModelError
from handrail.models.provider import Provider
from handrail.protocol.errors import build_install_command, build_pip_command

# Two threads that import the same packages from different ends can see them half made.
_importing = threading.Lock()


def warm_up(name: str) -> threading.Thread | None:
    """Begins to import what the model of that name needs, in a thread; None where the name means nothing.

    Whoever asks the model meanwhile waits for the rest of it, and for nothing else."""
    from handrail.models.finding import split_name  # noqa: PLC0415

    try:
        provider, _ = split_name(name)
    except ModelError:
        return None
    thread = threading.Thread(target=_load_quietly, args=(provider,), name="handrail-models", daemon=True)
    thread.start()
    return thread


def load(provider: Provider) -> None:
    """Imports what the provider needs. ModelError where it is not installed."""
    check_installed(provider)
    with _importing:
        for module in provider.modules:
            try:
                import_module(module)
            except ImportError as error:
                raise _broken(provider, error) from None


def check_installed(provider: Provider) -> None:
    """ModelError where a package is missing. It only looks."""
    if not is_installed(provider):
        raise ModelError(
            "UNAVAILABLE",
            f"What talks to {provider.name} is not installed. Install it: {build_install_command(provider.extra)}",
        )


def is_installed(provider: Provider) -> bool:
    """Whether what the provider needs is there."""
    tops = {module.split(".")[0] for module in provider.modules}
    return all(find_spec(top) is not None for top in tops) and _has(provider.modules[0])


def _has(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


def _load_quietly(provider: Provider) -> None:
    try:
        load(provider)
    except ModelError:
        return  # Whoever asks the model hears of it.


def _broken(provider: Provider, error: ImportError) -> ModelError:
    said = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
    renewal = build_pip_command("-U", f"pydantic-ai-slim[{provider.extra}]")
    return ModelError(
        "UNAVAILABLE",
        f"What talks to {provider.name} cannot be imported ({said}). Renew it: {renewal}",
    )
