"""How the outside reaches the boundary: the HTTP proxy, the in-process transport, MCP and the framework bridges."""
