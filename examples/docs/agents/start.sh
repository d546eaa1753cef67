agentfense agent claude
