"""Skills: folders with a SKILL.md that describes how to do a task, and which tools the task needs."""
