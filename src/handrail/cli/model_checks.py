"""The check of doctor for models: what is installed and which keys are set. No network; values are never shown."""

import os
from collections.abc import Iterator

from handrail.cli.rows import Finding, replace_home
from handrail.protocol.errors import build_install_command


def check_models() -> Iterator[Finding]:
    """Whose models can be asked."""
    from handrail.models.providers import PROVIDERS, is_installed  # noqa: PLC0415

    there = {provider.name for provider in PROVIDERS.values() if is_installed(provider)}
    if not there:
        brought = replace_home(build_install_command("models"))
        yield Finding("models", "ok", f"nothing that talks to models is installed; {brought} brings it")
    keyed = [provider for provider in PROVIDERS.values() if provider.key(os.environ) is not None]
    for provider in keyed:
        said = next(name for name in provider.keys if os.environ.get(name, "").strip())
        if provider.name in there:
            yield Finding("models", "ok", f"{provider.name}: {said} is set")
        else:
            fix = replace_home(build_install_command(provider.extra))
            yield Finding(
                "models", "warning", f"{provider.name}: {said} is set, but nothing that talks to it is there", fix
            )
    if there and not keyed:
        variables = ", ".join(provider.keys[0] for provider in PROVIDERS.values() if not provider.local)
        yield Finding("models", "ok", f"no key is set ({variables}); local servers need none: ollama:…")
