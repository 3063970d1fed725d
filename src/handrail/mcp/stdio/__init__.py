"""The MCP server over stdio, without the SDK: its import alone takes longer than our whole start."""
