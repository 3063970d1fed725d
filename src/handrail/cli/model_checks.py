"""The check of doctor for models: what is installed and which keys are set. No network; values are never shown."""

import os
from collections.abc import Iterator

from handrail.cli.rows import Row, without_home
from handrail.settings.extras import installing


def models() -> Iterator[Row]:
    """Whose models can be asked."""
    from handrail.models.loading import installed  # noqa: PLC0415
    from handrail.models.providers import PROVIDERS  # noqa: PLC0415

    there = {provider.name for provider in PROVIDERS.values() if installed(provider)}
    if not there:
        brought = without_home(installing("models"))
        yield Row("models", "ok", f"nothing that talks to models is installed; {brought} brings it")
    keyed = [provider for provider in PROVIDERS.values() if provider.key(os.environ) is not None]
    for provider in keyed:
        said = next(name for name in provider.keys if os.environ.get(name, "").strip())
        if provider.name in there:
            yield Row("models", "ok", f"{provider.name}: {said} is set")
        else:
            fix = without_home(installing(provider.extra))
            yield Row(
                "models", "warning", f"{provider.name}: {said} is set, but nothing that talks to it is there", fix
            )
    if there and not keyed:
        variables = ", ".join(provider.keys[0] for provider in PROVIDERS.values() if not provider.local)
        yield Row("models", "ok", f"no key is set ({variables}); local servers need none: ollama:…")
