"""The system prompt, one section a file, and the guide to the tools. All of it is made from specs and texts that are
handed in: the same ones always give the same bytes, so a provider can keep the prompt in its cache."""
