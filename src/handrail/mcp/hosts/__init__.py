"""Other programs' agents, and how each is told of our tools: pure, from the text of a settings file to another."""
