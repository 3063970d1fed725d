"""skill_control: a skill counts from now on, and its text is told; or it counts no longer."""

from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from msgspec import Meta

from handrail.protocol.records import SkillEntry
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.contract import Context, Output, Tool, Touches

if TYPE_CHECKING:
    from handrail.skills.finding import SkillCatalog
    from handrail.skills.skill import Skill

Action = Literal["activate", "deactivate"]


class SkillControlArguments(Arguments, frozen=True):
    """The arguments of skill_control."""

    name: Annotated[str, Meta(min_length=1, max_length=64, description="The skill, as skill_list names it.")]
    action: Annotated[
        Action, Meta(description="activate: its text comes back, and counts; deactivate: when it is done.")
    ]


class SkillControlData(Wire, frozen=True, omit_defaults=False):
    """What became of the skill."""

    name: str
    action: Action
    active: tuple[str, ...]
    """All that are active now."""
    allowed_tools: tuple[str, ...] | None
    """The tools that it leaves, in our names; None where it leaves all, and where it was deactivated."""
    folder: str | None
    """Where its files are, as `read` takes it."""
    files: tuple[str, ...]
    """Its files, relative to the folder."""
    warnings: tuple[str, ...]


class SkillBook(Protocol):
    """The skills of a session."""

    def found(self) -> "SkillCatalog":
        """All that there are."""
        ...

    def skill(self, name: str) -> "Skill | None":
        """One of them, with its other files."""
        ...

    def entries(self) -> tuple[SkillEntry, ...]:
        """The same as they are listed, with those that are active and gone."""
        ...

    def activate(self, skill: "Skill") -> object:
        """Makes one count."""
        ...

    def deactivate(self, name: str) -> bool:
        """Ends one; whether it was active."""
        ...

    def active_names(self) -> tuple[str, ...]:
        """Those that are active."""
        ...

    def reaches(self, folder: str) -> bool:
        """Whether files in a folder can be read."""
        ...


SKILL_CONTROL = ToolSpec(
    name="skill_control",
    title="Skill",
    description=(
        "Activate a skill to get its instructions, or deactivate it when its task is done. A skill may name the tools "
        "and commands that it takes: while it is active, only those are there."
    ),
    arguments=SkillControlArguments,
    data=SkillControlData,
    permissions=("fs.read",),
    side_effects=("conversation",),
    idempotent=True,
    enabled=False,
    layer="companion",
    intent="take up the instructions of a skill, or end it",
    plain_arguments=("name", "action"),
)


def build_skill_control_tool(book: SkillBook) -> Tool:
    """The tool skill_control for one session."""

    def run(_: Context, arguments: SkillControlArguments) -> Output:
        from handrail.tools.companions.skill_controlling import activate, deactivate  # noqa: PLC0415  on first use

        return (activate if arguments.action == "activate" else deactivate)(book, arguments.name)

    def touches(arguments: SkillControlArguments) -> Touches:
        """What a project says is a file of the workspace, and judged as one."""
        skill = book.found().get(arguments.name) if arguments.action == "activate" else None
        is_read = skill is not None and skill.origin == "project" and not skill.problem
        return Touches(reads=(f"{skill.folder}/SKILL.md",)) if skill is not None and is_read else Touches()

    return Tool(SKILL_CONTROL, run, touches)
