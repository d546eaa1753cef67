# Frees a server that was killed and cannot die, and takes its mounts away when it is dead.
#
#   watchdog.sh SERVER_PID DIRECTORY UMOUNT|- FUSERMOUNT|-
#
# A thread of the server may be in the kernel when the server is killed, to say that an entry of a mount has changed. For that
# it needs the lock of the entry's directory, and a process in a box may hold it while it waits for the server's answer. Nobody
# will answer, so the thread stays, and with it everything that the server has open: its mounts, its locks, its connections.
# From outside it looks like this: the first thread is dead, the process is not. Then the mounts below DIRECTORY are ended by
# force, which fails every request on them and lets the thread go.
#
# Standard input is the server's: its end is the end of the server, and of this. A server that ends by itself has unmounted
# everything by then.

while read -r -t 1 || (($? > 128)); do
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || break
  state=${stat##*) }
  [[ $state == [ZX]* ]] || continue
  while read -r _ _ device _ point _; do
    [[ $point == "$2"/* ]] || continue
    { echo 1 >"/sys/fs/fuse/connections/${device#*:}/abort"; } 2>/dev/null && continue
    # -c: looking at the mount point would wait for the server too.
    [[ $3 == - ]] || "$3" -f -c -- "$point"
  done </proc/self/mountinfo
done

while read -r _ _ _ _ point _; do
  [[ $point == "$2"/* ]] || continue
  if [[ $3 != - ]]; then "$3" -l -c -- "$point"; elif [[ $4 != - ]]; then "$4" -u -z -- "$point"; fi
done </proc/self/mountinfo
