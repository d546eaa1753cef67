agentfense agent claude --apply -- -p "mend the failing test" < /dev/null
agentfense agent claude --json -- -p "mend the failing test" > result.json
