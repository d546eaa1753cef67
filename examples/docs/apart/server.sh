# #region walk
npx agentfense serve &                                   # as root: below /var/lib/agentfense
curl -s --retry 30 --retry-connrefused --retry-delay 1 http://127.0.0.1:8080/readyz

API=http://127.0.0.1:8080/v1
JSON='content-type: application/json'

# A codebase: a whole directory as one version
CODEBASE=$(curl -s $API/codebases -H "$JSON" -d '{"name": "demo", "ownerId": "me"}' | jq -r .id)
tar -C examples/project -c . | curl -s -T - -H 'content-type: application/x-tar' $API/codebases/$CODEBASE/archive

# A sandbox on it, with the rules of agent-safe
SANDBOX=$(curl -s $API/sandboxes -H "$JSON" -d '{"codebaseId": "'$CODEBASE'", "preset": "agent-safe"}' | jq -r .id)
curl -s -X POST $API/sandboxes/$SANDBOX/start | jq -r .status

# What is hidden does not exist; what is written reaches the codebase after the command
curl -s $API/sandboxes/$SANDBOX/exec -H "$JSON" -d '{"command": "ls -A; cat .env"}' | jq -r '.stdout, .stderr'
curl -s $API/sandboxes/$SANDBOX/exec -H "$JSON" -d '{"command": "mkdir -p output; wc -l src/* > output/report.txt"}' | jq .exitCode
curl -s $API/codebases/$CODEBASE/files/output/report.txt

# Which rule decides, and what was refused
curl -s "$API/sandboxes/$SANDBOX/explain?path=/.env" | jq -r .explanation
curl -s "$API/events?sandbox_id=$SANDBOX&types=permission_denied" | jq -c '.events[].data'

curl -s -X DELETE $API/sandboxes/$SANDBOX
curl -s -X DELETE $API/codebases/$CODEBASE
kill %1
# #endregion
wait
