"""Settings of the programs that host an MCP client."""
