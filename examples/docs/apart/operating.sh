npx agentfense serve --config examples/operations/agentfense.yaml --set runtime.types=bwrap &
# #region watch
curl -s --retry 30 --retry-connrefused --retry-delay 1 http://127.0.0.1:8080/readyz
curl -s http://127.0.0.1:8080/metrics | grep ^agentfense_sandboxes
npx agentfense audit list --endpoint http://127.0.0.1:9000
npx agentfense audit verify
# #endregion
kill %1
wait
# #region backup
tar -C /var/lib -cf /var/lib/agentfense-backup.tar agentfense # while the server is stopped
# #endregion
