"""Skills: folders with a SKILL.md that describes a task."""
