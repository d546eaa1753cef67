# Starts one bwrap per line of its standard input, so that the server does not fork itself for every command: a fork of a
# large process takes tens of milliseconds, one of this shell takes one.
#
#   launcher.sh SERVER_PID BWRAP SETPRIV|- MARKER [IP]
#
# A line is a list of fields without blanks. No field is ever evaluated; a descriptor is one of the server's, by number.
#
#   quit
#   nest COMMANDS STATUS UNSHARE|- IP|-
#   enter ENTRANCE…
#   UID GID STATUS IN OUT ERR CHANNEL SECCOMP OPTIONS COMMAND BLOCK FILE_COUNT FILE…
#
# A nest is a process like this one for a single box: with UNSHARE in a network namespace of its own, and, once it was told to
# enter them, in the box's control groups. Entering a control group can take the kernel ten milliseconds and making a network namespace takes one, so that
# is done once and not for every command. It reads its lines from COMMANDS, writes `{}` to STATUS when it has opened both, and
# ends with its input. With IP this script is a nest; 6 is then its STATUS.
#
#   UID, GID     who bwrap runs as; `-` for the server's own user
#   STATUS       written to: `{}` once everything is open, then what bwrap reports, `{"launched":false}` on a failure
#   IN OUT ERR   a descriptor, `-` for nothing, or `tN` for the terminal /dev/pts/N
#   CHANNEL      what the command gets as descriptor 3, or `-`
#   SECCOMP      the filter;  OPTIONS: bwrap's;  COMMAND: the program and its arguments; both NUL-terminated lists
#   BLOCK        bwrap waits until this can be read, or `-`
#   FILE         contents for `--file`, in the order of descriptors 10, 11, …
#   ENTRANCE     files of control groups
#   IP           brings the loopback device of the new network namespace up
#
# Inside the job: 4 is OPTIONS, 5 SECCOMP, 6 STATUS, 7 BLOCK.

server=/proc/$1/fd bwrap=$2 setpriv=$3 marker=$4 ip=$5

# Whoever started the server may have left descriptors open in it that survive an exec; no box shall have them.
for fd in /proc/self/fd/*; do
  fd=${fd##*/}
  ((fd > 2 && fd != 255)) && ! [[ $fd == 6 && -n $ip ]] && exec {fd}>&-
done 2>/dev/null

umask 022
ulimit -c 0
for kind in H S; do
  limit=65536
  [[ $kind == S ]] && limit=16384
  current=$(ulimit -${kind}n)
  [[ $current == unlimited || $current -gt $limit ]] && ulimit -${kind}n $limit
done
# When the host runs out of memory the boxes go first; the server's own protection is not for them.
echo 500 2>/dev/null >/proc/self/oom_score_adj

launch() {
  local uid=$1 gid=$2 status=$3 in=$4 out=$5 err=$6 channel=$7 seccomp=$8 options=$9
  local command=${10} block=${11} files=${12}
  shift 12
  exec 6>"$server/$status" || exit
  # A background process of a shell begins with these ignored, and what is ignored stays so in the box; a trap does not.
  trap : INT QUIT
  trap 'echo "{\"launched\":false}" >&6' EXIT

  # The server's own standard error stays ours until the last moment: a failure of the launcher is not the command's output.
  exec 4<"$server/$options" 5<"$server/$seccomp" || exit
  [[ $block == - ]] || exec 7<"$server/$block" || exit
  local expected=10 slot
  while ((files-- > 0)); do
    exec {slot}<"$server/$1" || exit
    ((slot == expected++)) || exit
    shift
  done
  local argv
  mapfile -d '' -t argv <"$server/$command" || exit

  case $in in
    -) exec 0</dev/null ;;
    t*) exec 0<>"/dev/pts/${in#t}" ;;
    *) exec 0<"$server/$in" ;;
  esac || exit
  case $out in
    t*) exec 1<>"/dev/pts/${out#t}" ;;
    *) exec 1>"$server/$out" ;;
  esac || exit
  [[ $channel == - ]] || exec 3>"$server/$channel" || exit
  case $err in
    t*) exec 2<>"/dev/pts/${err#t}" ;;
    *) exec 2>"$server/$err" ;;
  esac || exit
  echo '{}' >&6

  # -c: an empty environment, for the box can read its process 1's. The marker tells a later server whose process this was.
  if [[ $uid == - ]]; then
    exec -c "$bwrap" --unsetenv "$marker" --args 4 -- "${argv[@]}"
  else
    exec -c "$setpriv" --reuid="$uid" --regid="$gid" --clear-groups --inh-caps=-all --bounding-set=-all -- \
      "$bwrap" --unsetenv "$marker" --args 4 -- "${argv[@]}"
  fi
}

nest() {
  local commands=$1 status=$2 unshare=$3 ip=$4
  exec 0<"$server/$commands" 6>"$server/$status" || exit
  echo '{}' >&6
  [[ $unshare == - ]] ||
    exec -c "$unshare" --net -- "$BASH" --norc --noprofile "$0" "${server//[!0-9]/}" "$bwrap" "$setpriv" "$marker" "$ip"
  serve
}

# Who cannot enter runs nothing: a command outside of its limits is worse than none.
enter() {
  local entrance
  for entrance; do
    echo 0 >"$entrance" || exit
  done
}

serve() {
  local fields
  while read -r -a fields; do
    case ${fields[0]} in
      quit) exit 0 ;;
      nest) (nest "${fields[@]:1}") & ;;
      enter) enter "${fields[@]:1}" ;;
      *) (launch "${fields[@]}") & ;;
    esac
  done
}

if [[ -n $ip ]]; then
  "$ip" link set lo up || exit
  serve
  exit 0
fi

serve
# The server is gone. A box set up by now dies with its bwrap, and that with this shell; one that is being set up needs a
# moment until that is arranged.
sleep 0.2
kill -KILL 0
