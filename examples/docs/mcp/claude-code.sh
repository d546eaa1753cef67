# In the directory of the project.
claude mcp add agentfense -- npx agentfense mcp .
