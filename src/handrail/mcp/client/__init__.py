"""Other MCP servers as sources of tools: they are started or reached, watched, and never believed."""
