npx @modelcontextprotocol/inspector npx agentfense mcp .
