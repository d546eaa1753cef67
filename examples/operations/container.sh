# #region run
docker run --detach --name agentfense \
  --device /dev/fuse \
  --cap-add SYS_ADMIN --cap-add NET_ADMIN \
  --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined \
  --volume agentfense:/var/lib/agentfense \
  --publish 127.0.0.1:9000:9000 --publish 127.0.0.1:8080:8080 \
  agentfense
docker exec agentfense agentfense key create --owner me # the address is open, so keys are required
# #endregion
