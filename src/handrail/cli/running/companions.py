"""The tools that a run offers besides the eight: what a model says to its person, and the skills there are."""

import os

from msgspec.structs import replace

from handrail.settings import LoadedSettings, Settings

_COMPANIONS = ("display", "question", "todo")
_OF_SKILLS = ("skill_list", "skill_control")


def enable_companion_tools(loaded: LoadedSettings, workspace: str | None = None) -> LoadedSettings:
    """The settings with the companions on, and those of skills where one can be used. What the person disabled
    stays off, and so does what the managed file does not list, where it lists any."""
    tools = loaded.settings.tools
    skills = _OF_SKILLS if workspace is not None and _has_skills(workspace, loaded.settings) else ()
    wanted = [name for name in (*_COMPANIONS, *skills) if name not in tools.enable]
    listed = loaded.managed.get("tools.enable")
    more = [name for name in wanted if not isinstance(listed, list | tuple) or name in listed]
    enable = (*tools.enable, *more)
    return replace(loaded, settings=replace(loaded.settings, tools=replace(tools, enable=enable)))


def _has_skills(workspace: str, settings: Settings) -> bool:
    from handrail.runtime.skills import has_usable_skill  # noqa: PLC0415  the demo has none

    return settings.skills.enabled and has_usable_skill(workspace, settings, os.environ)
