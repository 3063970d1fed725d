"""The Model Context Protocol, both ways: our tools for other programs' agents, and other servers' tools for ours."""
