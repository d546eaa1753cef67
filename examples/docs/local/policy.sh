cp "$(dirname "$0")/rules.yaml" .
# #region policy
npx agentfense policy tree --rules rules.yaml project
npx agentfense policy explain --rules rules.yaml project secrets/signing.key
npx agentfense policy lint --rules rules.yaml project || echo "a secret stays visible"
# #endregion
