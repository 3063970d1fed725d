"""The MCP server over streamable HTTP."""
