"""The wire contract: what crosses the border between an agent and the runtime. Data only."""
