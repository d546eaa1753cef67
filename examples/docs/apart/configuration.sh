# #region print
npx agentfense config print --config examples/operations/agentfense.yaml
# #endregion
