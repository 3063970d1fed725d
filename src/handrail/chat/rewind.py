"""Rewinds a session to an earlier prompt: its files, its conversation, or both."""

from typing import Literal

import msgspec

from handrail.async_api import AsyncHandrail
from handrail.chat.session import ChatSession, Prompt
from handrail.protocol.errors import ToolError
from handrail.protocol.text import to_one_line, truncate
from handrail.store.state_dir import make_id

RewindScope = Literal["files", "conversation", "both"]
SCOPES: tuple[RewindScope, ...] = ("both", "files", "conversation")


class RewindPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What going back to a prompt would do."""

    prompt: Prompt
    numbers: tuple[int, ...]
    """The change sets to undo, the latest first."""
    diff: str
    """What undoing them would change."""
    problem: str = ""
    """Why they cannot be undone."""


async def plan_rewind(rail: AsyncHandrail, prompts: list[Prompt], chosen: int) -> RewindPlan:
    """The plan for going back to before a prompt. The prompts are the latest first."""
    turns = [prompt.turn for prompt in prompts[: chosen + 1]]
    numbers = await rail.list_turn_changes(turns)
    diff, problem = "", ""
    if numbers:
        try:
            diff = await rail.preview_undo(numbers)
        except ToolError as error:
            problem = error.message
    return RewindPlan(prompt=prompts[chosen], numbers=numbers, diff=diff, problem=problem)


def describe_scopes(plan: RewindPlan) -> list[str]:
    """A row for each scope: its effect in words."""
    count = len(plan.numbers)
    changes = f"undo {count} {'change' if count == 1 else 'changes'}" if count else "nothing to undo"
    files = to_one_line(f"cannot undo: {plan.problem}") if plan.problem else changes
    talk = "continue before this prompt in a new session; the old session stays"
    return [f"both          {files}; {talk}", f"files         {files}", f"conversation  {talk}"]


def describe_prompt(prompt: Prompt) -> str:
    return truncate(to_one_line(prompt.text), 200)


async def rewind_files(rail: AsyncHandrail, plan: RewindPlan) -> bool:
    """Undoes the changes. Returns whether all are undone; the view shows the result."""
    return not plan.numbers or (await rail.undo(plan.numbers)).error is None


async def rewind_conversation(session: ChatSession, plan: RewindPlan) -> str:
    """Starts a session with the conversation before the prompt. Returns its id."""
    return await session.rail.fork_session(make_id("s"), before=plan.prompt.number)
