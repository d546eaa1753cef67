# #region commands
npx agentfense doctor                                       # what this machine can do, and how to mend the rest
npx agentfense run project -- 'cat .env; wc -l src/*'       # in a sandbox; lists what it changed, changes nothing
npx agentfense run --preset development --delta changes project -- 'echo "# Parcels" > README.md'
npx agentfense diff --delta changes project                 # then apply or discard, by path
npx agentfense apply --delta changes project README.md     # by the rules of that run
npx agentfense policy tree --all project                    # what an agent would see here, and what not
npx agentfense policy explain project .env src/events.js    # which rule decides, which ones lost
npx agentfense policy lint project                          # secrets that stay visible, rules that match nothing
# #endregion
