AGENTFENSE_API_KEY=$(openssl rand -hex 24) npx agentfense mcp --http .
