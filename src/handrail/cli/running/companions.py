"""The tools that a run offers besides the eight: what a model says to its person, and the skills there are."""

from msgspec.structs import replace

from handrail.settings import Loaded

_COMPANIONS = ("display", "question", "todo")


def with_companions(loaded: Loaded, skills: tuple[str, ...] = ()) -> Loaded:
    """The settings with the companions on. What the person disabled stays off, and so does what the managed file does
    not list, where it lists any."""
    tools = loaded.settings.tools
    listed = loaded.managed.get("tools.enable")
    wanted = [name for name in (*_COMPANIONS, *skills) if name not in tools.enable]
    more = [name for name in wanted if not isinstance(listed, list | tuple) or name in listed]
    enable = (*tools.enable, *more)
    return replace(loaded, settings=replace(loaded.settings, tools=replace(tools, enable=enable)))
