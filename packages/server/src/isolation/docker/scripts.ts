// What runs inside the container besides the commands themselves: shell scripts, for a shell is all an image is sure to have.
// They use nothing but what POSIX builds into the shell, so that they also work when no process can be made any more.
//
// A command is started as  docker-init -s -- sh -c SCRIPT sh STDIN WORKDIR PROGRAM ARGUMENT…
// docker-init (tini) is a subreaper: whatever the command starts stays below it, however often it forks or calls setsid, and
// also when the command itself has ended. The script tells the server what happens in frames between the bytes of the streams:
//
//   frame     = RS mark SP text RS         RS is 0x1e; mark and seal are 32 random hexadecimal digits each
//   ready                                  terminals only: waits for a line, which is `go` when the terminal has its size
//   workdir                                stderr only: the working directory cannot be entered; nothing was started
//   program                                stderr only: the program is not there; nothing was started
//   started ROOT WRAPPER OOMS              stderr only, before the program runs: pid of docker-init and of the script
//   shell PID                              stderr only: the shell of a session is this process
//   status LINE                            both streams: the shell of a session wrote LINE to descriptor 3
//   ended SEAL CODE OOMS                   both streams: the command has ended; what it left in the background may live
//
// A frame is behind everything that was written to the stream before it, which makes it the end of the command's output without
// any help from the daemon. After `ended` the script sleeps until the server has it killed. That is when nothing else lives
// below its docker-init any more: until then the two hold the streams of the background processes open and keep them together.
//
// Mark and seal are the first line of the script's stdin, and stay in variables of the script that nothing it starts
// inherits: /proc shows neither. A command can still read the mark out of its own streams, which are pipes; so what
// ends a command also needs the seal, which is in no pipe before the command has ended. All processes
// of a box are one user, and one that traces the script of another command, or gets hold of its stdin first, learns both.
// What it gains is the end of that command with an exit code of its choice: what goes on running is then in the background.

// ooms: how often the kernel killed for memory here; the first file is version 2 of control groups, the second version 1.
const OOMS = `
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
trap : INT TERM HUP QUIT
`;

/** The last word of a script, to these descriptors. */
function ending(...descriptors: readonly number[]): string {
  const words = descriptors.map((descriptor) => `say ended "$_e" $code $_o >&${descriptor}`);
  return ["ooms", ...words, "exec /bin/sleep 2147483647"].join("\n");
}

/** One command. */
export const COMMAND_SCRIPT = `${OOMS}${PRELUDE}
check "$@"
( exec "$@" 2>&9 8>&- 9>&- )
code=$?
${ending(8, 9)}`;

/**
 * A session's shell. Its descriptor 3 is a pipe to a loop that turns lines into `status` frames on both streams; a line that
 * begins with the seal is the script's own and has the shell's exit code.
 */
export const SHELL_SCRIPT = `${OOMS}${PRELUDE}
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
${ending(8, 9)}`;

/**
 * One command on a terminal, which has a single stream. The last word comes out also when the command has set the terminal
 * to stop whoever writes to it from the background.
 */
export const TERMINAL_SCRIPT = `${OOMS}${PRELUDE}
say ready >&9
read -r _l && [ "$_l" = go ] || exit 125
check "$@"
( exec "$@" 2>&9 8>&- 9>&- )
code=$?
trap '' TTOU
${ending(9)}`;

/**
 * The box's helper: a shell that lives as long as the container and does what only somebody inside can, since the daemon
 * has no way to signal what it started. It was there before any command, so it needs no new process when the box has none
 * left. Reads `ID VERB ARGUMENT…`, answers `ID ANSWER`:
 *
 *   shells                          the shells this image has
 *   clear ROOT WRAPPER              kills what is below a command's root; 0 when nothing is left
 *   release ROOT WRAPPER            kills the two themselves
 *   settle ROOT:WRAPPER…            for commands that have ended: releases those which left nothing; the roots of the others
 *   orphans                         kills what lost its root, since it killed it: such processes are children of process 1
 *   uptime                          seconds since boot, as the kernel counts start times
 *   foreground SIGNAL SHELL SINCE   signals the shell's children that started at SINCE (1/100 s) or later, and their descendants
 *   signal SIGNAL PID
 *   tree SIGNAL ROOT WRAPPER        signals what is below a command's root; how many got it
 *   channels SHELL ROOT WRAPPER     how many others below ROOT have the shell's descriptors 0 and 8 in hand, what it has read, and who
 *                                   may be about to close such a descriptor: THREAD,START,STATE,TICKS …
 *   ooms
 */
export const HELPER_SCRIPT = `${OOMS}
exec 2>/dev/null
trap '' INT TERM HUP QUIT PIPE USR1 USR2
# census: $pairs becomes " pid:parent …" of all processes.
census() {
  pairs=
  for d in /proc/[0-9]*; do
    field "$d/status" PPid
    [ -n "$field" ] && pairs="$pairs \${d#/proc/}:$field"
  done
}
# below PID…: $tree becomes those processes and all their descendants, as the census found them.
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
# kids PID: $kids becomes its children: by the kernel's own list where there is one.
kids() {
  kids=
  if [ -r "/proc/$1/task/$1/children" ]; then
    read -r kids <"/proc/$1/task/$1/children"
  else
    census
    for e in $pairs; do [ "\${e#*:}" = "$1" ] && kids="$kids \${e%:*}"; done
  fi
}
# is_dead PID: whether it is gone or only waits to be reaped. A leader that ended before its threads looks like a zombie, too.
is_dead() {
  field "/proc/$1/status" State
  case $field in
    "") ;;
    [ZX]) set -- "/proc/$1/task/"*; [ $# -le 1 ];;
    *) false;;
  esac
}
# is_empty ROOT WRAPPER: whether nothing of ours lives below ROOT but WRAPPER. Whoever ends hands its children to ROOT in the
# same moment, so a list of ROOT's children without a living one is proof, however fast they fork; a walk would be none. A
# second look sees to it that the list did not change while it was gone through.
is_empty() {
  kids "$2"; seen=$kids
  kids "$1"; seen="$seen $kids"
  for p in $seen; do
    [ "$p" = "$2" ] || ! kill -0 "$p" || is_dead "$p" || return 1
  done
  kids "$2"; again=$kids
  kids "$1"
  [ "$seen" = "$again $kids" ]
}
# clear ROOT WRAPPER: kills what is below ROOT but WRAPPER until nothing is left, or for a second or two.
clear() {
  read -r now _ </proc/uptime
  last=$((\${now%.*} + 1))
  until is_empty "$1" "$2"; do
    read -r now _ </proc/uptime
    [ \${now%.*} -le $last ] || return 1
    census
    below "$1"
    kids "$1"
    for p in $kids $tree; do
      [ "$p" = "$1" ] || [ "$p" = "$2" ] || kill -9 "$p"
    done
  done
  return 0
}
# look DIRECTORY: of a process or a thread, its $state, $flags, $ticks (CPU time) and $start time. The name in stat may hold anything,
# line breaks and brackets too.
look() {
  s=
  while read -r l || [ -n "$l" ]; do s="$s $l"; done <"$1/stat"
  s=\${s##*) }
  set -- $s
  state=\${1:-X} flags=\${7:-4} ticks=$((\${12:-0} + \${13:-0})) start=\${20:-0}
}
# is_root PID: only what the daemon started has its parent outside.
is_root() {
  field "/proc/$1/status" PPid
  [ "$field" = 0 ]
}
# field FILE NAME: $field becomes the value behind NAME in FILE.
field() {
  field=
  while read -r k v _; do
    [ "$k" = "$2:" ] && field=$v && break
  done <"$1"
}
# holds THREAD SHELL: whether the thread, a directory of /proc, has a channel of the shell; if only one that the kernel may be about to
# close, $suspect becomes what tells it from others. A subshell has copies above 9 that close on exec (zsh closes them by itself):
# those are nobody's work.
holds() {
  # First who it is, then what it has: a subshell that becomes a program meanwhile has less, never more.
  same=0 suspect=
  [ "$1/exe" -ef "/proc/$2/exe" ] && same=1
  for f in "$1/fd/"*; do
    [ "$f" -ef "/proc/$2/fd/0" ] || [ "$f" -ef "/proc/$2/fd/8" ] || continue
    case \${f##*/} in ?) return 0;; esac
    if ! [ "/proc/$2/exe" -ef /bin/zsh ]; then
      field "$1/fdinfo/\${f##*/}" flags
      case $field in 0[2367]??????|"") ;; *) return 0;; esac
    fi
    [ $same = 1 ] && continue
    look "$1"
    [ $((flags & 4)) = 0 ] && suspect="$1,$start,$state,$ticks"
  done
  return 1
}
while read -r id verb a b c; do
  answer=
  case $verb in
    shells) for f in /bin/bash /bin/sh /bin/dash /bin/zsh /usr/bin/zsh; do [ -x $f ] && answer="$answer $f"; done;;
    clear) answer=0; is_root "$a" && { clear "$a" "$b"; answer=$?; };;
    release) is_root "$a" && kill -9 "$b" "$a";;
    settle)
      for r in $a $b $c; do
        w=\${r#*:} r=\${r%:*}
        is_root "$r" || continue
        if is_empty "$r" "$w" || is_empty "$r" "$w"; then kill -9 "$w" "$r"; else answer="$answer $r"; fi
      done;;
    orphans) clear 1 1; answer=$?;;
    uptime) read -r answer _ </proc/uptime;;
    foreground)
      census
      roots= answer=0
      for e in $pairs; do
        [ "\${e#*:}" = "$b" ] || continue
        look "/proc/\${e%:*}"
        [ "$start" -ge "$c" ] && roots="$roots \${e%:*}"
      done
      if [ -n "$roots" ]; then
        below $roots
        for p in $tree; do
          is_dead "$p" && continue
          kill -s "$a" "$p" && answer=$((answer + 1))
        done
      fi;;
    signal) kill -"$a" "$b";;
    tree)
      answer=0
      if is_root "$b"; then
        census
        below "$b"
        for p in $tree; do
          [ "$p" = "$b" ] || [ "$p" = "$c" ] && continue
          is_dead "$p" && continue
          kill -"$a" "$p" && answer=$((answer + 1))
        done
      fi;;
    channels)
      census
      below "$b"
      found=0 suspects=
      for e in $pairs; do
        p=\${e%:*}
        case $tree in *" $p "*) ;; *) continue;; esac
        [ "$p" = "$a" ] || [ "$p" = "$b" ] || [ "$p" = "$c" ] || [ "\${e#*:}" = "$c" ] && continue
        for t in "/proc/$p/task/"*; do
          if holds "$t" "$a"; then found=$((found + 1)); else suspects="$suspects $suspect"; fi
        done
      done
      field "/proc/$a/task/$a/io" rchar
      answer="$found \${field:--}$suspects";;
    ooms) ooms; answer=$_o;;
  esac
  printf '%s %s\\n' "$id" "$answer"
done
`;

/** Where the daemon puts its init into every container that asks for one. */
const INIT = "/sbin/docker-init";

/** Arguments are seen by whoever lists processes inside: no comments, no indentation. */
export function compact(script: string): string {
  const lines = script.split("\n").map((line) => line.trim());
  return lines.filter((line) => line !== "" && !line.startsWith("#")).join("\n");
}

export function commandLine(
  script: string,
  command: { readonly workdir: string; readonly argv: readonly string[]; readonly stdin: boolean },
): string[] {
  const stdin = command.stdin ? "1" : "0";
  return [INIT, "-s", "--", "/bin/sh", "-c", compact(script), "sh", stdin, command.workdir, ...command.argv];
}

/** Exits with 0 where a process can be a subreaper. */
export const SUBREAPER_PROBE = [INIT, "-s", "--", "/bin/sh", "-c", "exit 0"];
