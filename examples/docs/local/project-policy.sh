cp "$(dirname "$0")/whole-policy.yaml" project/.agentfense.yaml
# #region use
npx agentfense policy tree project                # as the file says
npx agentfense policy tree --no-policy project    # as if there were none
# #endregion
rm project/.agentfense.yaml
# #region init
npx agentfense init --stdout project              # what it would write
npx agentfense init --preset development project  # writes project/.agentfense.yaml, then checks it
# #endregion
