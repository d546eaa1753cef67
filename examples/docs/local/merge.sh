# #region two
npx agentfense run --preset development --delta first project -- 'sed -i "1s/.*/# Parcels/" README.md'
npx agentfense run --preset development --delta second project -- 'echo "See docs." >> README.md'
npx agentfense merge first second             # into project, where both began
# #endregion
