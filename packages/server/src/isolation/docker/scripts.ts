// What runs inside the container besides the commands themselves: shell scripts, for a shell is all an image is sure to have.
// They use nothing but what POSIX builds into the shell, so that they also work when no process can be made any more.
//
// A command is started as  docker-init -s -- sh -c SCRIPT sh STDIN WORKDIR PROGRAM ARGUMENT…
// docker-init (tini) is a subreaper: whatever the command starts stays below it, however often it forks or calls setsid. The
// script tells the server what happens in frames between the bytes of the streams:
//
//   frame     = RS mark SP text RS         RS is 0x1e; mark and seal are 32 random hexadecimal digits each
//   workdir                                stderr only: the working directory cannot be entered; nothing was started
//   program                                stderr only: the program is not there; nothing was started
//   started ROOT WRAPPER OOMS              stderr only, before the program runs: pid of docker-init and of the script
//   shell PID                              stderr only: the shell of a session is this process
//   status LINE                            both streams: the shell of a session wrote LINE to descriptor 3
//   ended SEAL CODE OOMS                   both streams: the command has ended and nothing it started lives any more
//
// A runtime without subreapers (old versions of gVisor) gets the script without docker-init; ROOT is then the script. What a
// command detaches from itself there cannot be told from what another detached, and ends with whichever ends first.
//
// A frame is behind everything that was written to the stream before it, which makes it the end of that stream without any
// help from the engine. After `ended` the script sleeps until the server kills it: the engine cuts off output that
// nobody fetched within two seconds of a process's end, and a reader may be slower than that.
//
// Mark and seal are the first line of the script's stdin, and stay in variables of the script that nothing it starts
// inherits: /proc shows neither. A command can still read the mark out of its own streams, which are pipes; so what
// ends a command also needs the seal, which is in no pipe before everything the command started is dead. All processes
// of a box are one user, and one that traces the script of another command, or gets hold of its stdin first, learns both.
// What it gains is the end of that command with an exit code of its choice: the server then kills the command's tree.

const FUNCTIONS = `
# census: $pairs becomes " pid:parent …" of all processes, $dead those that only wait to be reaped.
# A leader that ended before its threads looks like a zombie, too, but has more than one task.
census() {
  pairs= dead=" "
  for d in /proc/[0-9]*; do
    p=\${d#/proc/} s= u=
    while read -r k v _; do
      case $k in State:) s=$v;; PPid:) u=$v; break;; esac
    done <"$d/status"
    [ -n "$u" ] || continue
    pairs="$pairs $p:$u"
    case $s in [ZX]) set -- "$d"/task/*; [ $# -gt 1 ] || dead="$dead$p ";; esac
  done
}
# below PID…: $tree becomes those processes and all their descendants.
below() {
  tree=" $* " more=1
  while [ $more = 1 ]; do
    more=0
    for e in $pairs; do
      case $tree in *" \${e%:*} "*) continue;; esac
      case $tree in *" \${e#*:} "*) tree="$tree\${e%:*} " more=1;; esac
    done
  done
}
# sweep ROOT SPARED: kills every descendant of ROOT but SPARED; $found counts those that were still alive.
sweep() {
  census
  below "$1"
  found=0
  for p in $tree; do
    [ "$p" = "$1" ] || [ "$p" = "$2" ] && continue
    kill -9 "$p" || continue
    case $dead in *" $p "*) ;; *) found=$((found + 1));; esac
  done
}
# clear ROOT SPARED: sweeps until nothing is left, or for as long as is reasonable. Where ROOT is the script itself there is
# no subreaper: what the command let go of is then a child of process 1, like that of any other command.
clear() {
  rounds=0 found=1
  while [ $found -gt 0 ] && [ $rounds -lt 200 ]; do
    rounds=$((rounds + 1))
    sweep "$1" "$2"
    total=$found
    [ "$1" = "$2" ] && [ "$1" != 1 ] && sweep 1 1
    found=$((found > total ? found : total))
  done
}
# ooms: how often the kernel killed for memory here; the first file is version 2 of control groups, the second version 1.
ooms() {
  _o=0
  for _f in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    [ -r $_f ] || continue
    while read -r _k _v _; do
      [ "$_k" = oom_kill ] && _o=$_v
    done <$_f
  done
}
`;

// Descriptor 9 is the real stderr, 8 the real stdout; what the script itself has to complain about ("Killed") is nobody's
// output. (The command is run by a subshell, since some shells redirect themselves for the time of a command.) Up to the
// start of the command only variables with an underscore are set: one that came with the environment would reach the
// command changed. The two that hold the secrets are unset first, since a variable that came with it would be exported.
const PRELUDE = String.raw`
exec 8>&1 9>&2 2>/dev/null
set +a
unset _n _e
IFS=' ' read -r _n _e
[ -n "$_e" ] || exit 125
[ "$1" = 1 ] || exec </dev/null
_w=$2
shift 2
say() { printf '\036%s %s\036' "$_n" "$*"; }
check() {
  cd -- "$_w" || { say workdir >&9; exit 126; }
  unset OLDPWD
  [ -f "$1" ] && [ -x "$1" ] || { say program >&9; exit 127; }
  ooms
  say started $_r $$ $_o >&9
}
_r=$PPID
[ $_r = 0 ] && _r=$$
trap : INT TERM HUP QUIT
`;

const ENDING = `
clear $_r $$
ooms
say ended "$_e" $code $_o
say ended "$_e" $code $_o >&9
exec /bin/sleep 2147483647
`;

/** One command. */
export const COMMAND_SCRIPT = `${FUNCTIONS}${PRELUDE}
check "$@"
( exec "$@" 2>&9 8>&- 9>&- )
code=$?
${ENDING}`;

/**
 * A session's shell. Its descriptor 3 is a pipe to a loop that turns lines into `status` frames on both streams; a line that
 * begins with the seal is the script's own and has the shell's exit code.
 */
export const SHELL_SCRIPT = `${FUNCTIONS}${PRELUDE}
check "$@"
{
  (
    read -r _p _ </proc/self/stat
    say shell $_p >&9
    exec "$@" 3>&1 >&8 2>&9 8>&- 9>&-
  )
  printf '%s %s\\n' "$_e" $?
} | (
  while IFS= read -r line; do
    case $line in "$_e "*) exit "\${line#* }";; esac
    say status "$line" >&8
    say status "$line" >&9
  done
  exit 137
)
code=$?
${ENDING}`;

/**
 * One command on a terminal, which has a single stream. It waits for a line before it starts: by then the terminal has its
 * size. Exits by itself, for a person at a terminal does not leave a megabyte unread.
 */
export const TERMINAL_SCRIPT = `${FUNCTIONS}${PRELUDE}
say ready >&9
read -r _
check "$@"
( exec "$@" 2>&9 8>&- 9>&- )
code=$?
clear $_r $$
exit $code
`;

/**
 * The box's warden: a shell that lives as long as the container and does what only somebody inside can, since the engine
 * has no way to signal what it started. It was there before any command, so it needs no new process when the box has none
 * left. Reads `ID VERB ARGUMENT…`, answers `ID ANSWER`:
 *
 *   shells                          the shells this image has
 *   clear ROOT WRAPPER              kills what is below a command's root; how many refuse to die
 *   release ROOT WRAPPER            kills the two themselves
 *   end ROOT WRAPPER                both: clears, then releases
 *   orphans                         kills what lost its root, since it killed it: such processes are children of process 1
 *   uptime                          seconds since boot, as the kernel counts start times
 *   foreground SIGNAL SHELL SINCE   signals the shell's children that started at SINCE (1/100 s) or later, and their descendants
 *   signal SIGNAL PID
 *   channels SHELL ROOT WRAPPER     how many others below ROOT have the shell's descriptors 0 and 8 in hand, and what it has read
 *   ooms
 */
export const WARDEN_SCRIPT = `${FUNCTIONS}
exec 2>/dev/null
trap '' INT TERM HUP QUIT PIPE USR1 USR2
# start PID: $start becomes its start time. The name in stat may hold anything, line breaks and brackets too.
start() {
  start=0 s=
  while read -r l || [ -n "$l" ]; do s="$s $l"; done <"/proc/$1/stat"
  s=\${s##*) }
  set -- $s
  start=\${20:-0}
}
# is_root PID: only what the engine started has its parent outside.
is_root() {
  u=
  while read -r k v _; do
    case $k in PPid:) u=$v; break;; esac
  done <"/proc/$1/status"
  [ "$u" = 0 ]
}
# field FILE NAME: $field becomes the value behind NAME in FILE.
field() {
  field=
  while read -r k v _; do
    [ "$k" = "$2:" ] && field=$v
  done <"$1"
}
# holds PID SHELL: whether it has a channel of the shell. A subshell has copies above 9 that close on exec (zsh closes them by
# itself): those are nobody's work.
holds() {
  # First who it is, then what it has: a subshell that becomes a program meanwhile has less, never more.
  same=0
  [ "/proc/$1/exe" -ef "/proc/$2/exe" ] && same=1
  for f in "/proc/$1/fd/"*; do
    [ "$f" -ef "/proc/$2/fd/0" ] || [ "$f" -ef "/proc/$2/fd/8" ] || continue
    [ $same = 1 ] || return 0
    case \${f##*/} in ?) return 0;; esac
    [ "/proc/$2/exe" -ef /bin/zsh ] && continue
    field "/proc/$1/fdinfo/\${f##*/}" flags
    case $field in 0[2367]??????) ;; ?*) return 0;; esac
  done
  return 1
}
while read -r id verb a b c; do
  answer=
  case $verb in
    shells) for f in /bin/bash /bin/sh /bin/dash /bin/zsh /usr/bin/zsh; do [ -x $f ] && answer="$answer $f"; done;;
    clear) found=0; is_root "$a" && clear "$a" "$b"; answer=$found;;
    release) is_root "$a" && kill -9 "$b" "$a";;
    end) found=0; is_root "$a" && { clear "$a" "$b"; kill -9 "$b" "$a"; }; answer=$found;;
    orphans) clear 1 1; answer=$found;;
    uptime) read -r answer _ </proc/uptime;;
    foreground)
      census
      roots= answer=0
      for e in $pairs; do
        [ "\${e#*:}" = "$b" ] || continue
        start "\${e%:*}"
        [ "$start" -ge "$c" ] && roots="$roots \${e%:*}"
      done
      if [ -n "$roots" ]; then
        below $roots
        for p in $tree; do
          case $dead in *" $p "*) continue;; esac
          kill -s "$a" "$p" && answer=$((answer + 1))
        done
      fi;;
    signal) kill -"$a" "$b";;
    channels)
      census
      below "$b"
      found=0
      for e in $pairs; do
        p=\${e%:*}
        case $tree in *" $p "*) ;; *) continue;; esac
        [ "$p" = "$a" ] || [ "$p" = "$b" ] || [ "$p" = "$c" ] || [ "\${e#*:}" = "$c" ] && continue
        holds "$p" "$a" && found=$((found + 1))
      done
      field "/proc/$a/task/$a/io" rchar
      answer="$found $field";;
    ooms) ooms; answer=$_o;;
  esac
  printf '%s %s\\n' "$id" "$answer"
done
`;

/** Where the engine puts its init into every container that asks for one. */
const INIT = "/sbin/docker-init";

/** Arguments are seen by whoever lists processes inside: no comments, no indentation. */
export function compact(script: string): string {
  const lines = script.split("\n").map((line) => line.trim());
  return lines.filter((line) => line !== "" && !line.startsWith("#")).join("\n");
}

export function commandLine(
  script: string,
  options: { readonly stdin: boolean; readonly subreaper: boolean },
  command: { readonly workdir: string; readonly argv: readonly string[] },
): string[] {
  const stdin = options.stdin ? "1" : "0";
  const start = ["/bin/sh", "-c", compact(script), "sh", stdin, command.workdir, ...command.argv];
  return options.subreaper ? [INIT, "-s", "--", ...start] : start;
}

/** Exits with 0 where a process can be a subreaper. */
export const SUBREAPER_PROBE = [INIT, "-s", "--", "/bin/sh", "-c", "exit 0"];
