"""Settings from all layers, and which layer each value comes from."""

from collections.abc import Mapping, Sequence

import msgspec

from handrail.settings.check import nest
from handrail.settings.layers import Layer, default_layer, environment_layer, flag_layer, user_layer
from handrail.settings.location import expand_home
from handrail.settings.model import Settings


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """The settings in force; for every dotted key its source; what a person should be told."""

    settings: Settings
    sources: dict[str, str]
    notes: tuple[str, ...] = ()


def load(environ: Mapping[str, str], flags: Mapping[str, object]) -> Loaded:
    """Flag beats environment beats user file beats default; folders come back absolute."""
    layers = [default_layer(), user_layer(environ)]
    layers.append(environment_layer(environ, *_nearest(layers, "mode")))
    layers.append(flag_layer(flags))
    return _merge(layers, environ)


def _merge(layers: Sequence[Layer], environ: Mapping[str, str]) -> Loaded:
    """The last layer that names a key decides it."""
    values: dict[str, object] = {}
    sources: dict[str, str] = {}
    for layer in layers:
        values.update(layer.values)
        sources.update(dict.fromkeys(layer.values, layer.source))
    return Loaded(
        settings=_with_home(msgspec.convert(nest(values), Settings), environ),
        sources=sources,
        notes=tuple(note for layer in layers for note in layer.notes),
    )


def _nearest(layers: Sequence[Layer], key: str) -> tuple[object, str]:
    return next((layer.values[key], layer.source) for layer in reversed(layers) if key in layer.values)


def _with_home(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """No reader of the settings has to know about `~`."""

    def absolute(folders: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(expand_home(folder, environ) for folder in folders)

    return msgspec.structs.replace(
        settings,
        tools=msgspec.structs.replace(settings.tools, folders=absolute(settings.tools.folders)),
        paths=msgspec.structs.replace(
            settings.paths,
            read_only=absolute(settings.paths.read_only),
            writable=absolute(settings.paths.writable),
        ),
    )
