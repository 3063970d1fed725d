"""Skills: folders with a SKILL.md that tell a model how to do one thing, and which tools that takes."""
