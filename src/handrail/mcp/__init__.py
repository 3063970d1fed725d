"""The Model Context Protocol: our tools for other agents, other servers' tools for ours."""
