"""The MCP proxy: stands between a client and its tool server, and lets what is said between them cross the door."""
