# #region keys
npx agentfense key create --owner alice # prints the secret, once
npx agentfense key create --owner ops --role admin
npx agentfense key list
npx agentfense key revoke "$(npx agentfense key list --json | jq -r '.[0].id')" # in force at once, for open streams within a second
# #endregion
