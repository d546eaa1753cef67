// What a spare is told, and the script that does it.
//
// An order is a file of NUL-terminated fields:
//
//   STDIN CHANNEL WORKDIR VARIABLE_COUNT NAME=VALUE… PROGRAM ARGUMENT…
//
//   STDIN     `yes`: descriptor 0 stays the pipe it is; else it becomes /dev/null
//   CHANNEL   `yes`: descriptor 3 stays open, for the status of a shell
//   NAME      over the variables of the box, which the spare has had from its start
//
// A spare has the file open from its start. It waits for a line on its standard input, then the file holds the order. It
// answers `go` on descriptor 3, just before the program takes its place. Without an answer the program did not run.

export interface Order {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly stdin: boolean;
  readonly channel: boolean;
}

/** Tells a spare that its order is there. */
export const CALL = "\n";
export const ANSWER = "go\n";

// Together less than the kernel takes at the least (128 KiB): an order that was read can be carried out.
const MAX_ENVIRONMENT_BYTES = 32 * 1024;
const MAX_ORDER_BYTES = 64 * 1024;

/** Variables that bash keeps, counts, computes or obeys at once: it may not hand them on as they were given. */
const KEPT_BY_BASH = anyOf([
  ...["BASH(?!_ENV$).*", "(?:COMP|HIST|MAIL|OPT|READLINE_).*", "_", "CHILD_MAX", "COLUMNS", "COPROC", "DIRSTACK"],
  ...["EPOCHREALTIME", "EPOCHSECONDS", "EUID", "EXECIGNORE", "FUNCNAME", "FUNCNEST", "GLOBIGNORE", "GROUPS"],
  ...["HOSTFILE", "HOSTTYPE", "IFS", "IGNOREEOF", "LINENO", "LINES", "MACHTYPE", "MAPFILE", "OLDPWD", "OSTYPE"],
  ...["PIPESTATUS", "POSIXLY_CORRECT", "PPID", "PWD", "RANDOM", "REPLY", "SECONDS", "SHELLOPTS", "SHLVL", "SRANDOM"],
  ...["TEXTDOMAIN.*", "TMOUT", "UID", "auto_resume", "histchars", "ignoreeof"],
]);

/** Variables that act on bash when it starts: a command may be given them, a box with spares may not have them. */
const READ_AT_START = anyOf(["BASH_ENV", "CDPATH", "ENV", "(?:GLIBC|LC|LD|MALLOC)_.*", "LOCPATH", "NLSPATH", "PS\\d"]);

function anyOf(patterns: readonly string[]): RegExp {
  return new RegExp(`^(?:${patterns.join("|")})$`);
}

/** Whether a spare can be started with these variables of its box. */
export function canBeSpareEnvironment(env: Readonly<Record<string, string>>): boolean {
  const isCalm = !Object.keys(env).some((name) => READ_AT_START.test(name));
  return isCalm && passesUnchanged(env) && Buffer.byteLength(Object.entries(env).join("")) <= MAX_ENVIRONMENT_BYTES;
}

/** The order as a file; nothing when it is not one for a spare. */
export function orderFile(order: Order): Buffer | undefined {
  if (!passesUnchanged(order.env)) return undefined;
  const variables = Object.entries(order.env).map(([name, value]) => `${name}=${value}`);
  const answers = [order.stdin, order.channel].map((is) => (is ? "yes" : "no"));
  const fields = [...answers, order.workdir, String(variables.length), ...variables, ...order.argv];
  const file = Buffer.from(fields.map((field) => `${field}\0`).join(""), "utf8");
  return file.length > MAX_ORDER_BYTES ? undefined : file;
}

/** Whether bash hands these on to a program exactly as they are. */
function passesUnchanged(env: Readonly<Record<string, string>>): boolean {
  return Object.keys(env).every((name) => /^[A-Za-z_]\w*$/.test(name) && !KEPT_BY_BASH.test(name));
}

// stderr is the command's: what bash has to say about a locale or a directory must not get there.
// SHLVL is made an array, which is never exported: exec would count it down, and so add it to the environment.
// PWD becomes what bwrap makes of it, the directory as it was given.
// MAPFILE is the only variable of the script that lives on, and it is not exported.
const script = (file: number): string => `
exec 9>&2 2>/dev/null
unset SHLVL; declare -a SHLVL
IFS= read -r || exit
mapfile -d '' -t -u ${file} && exec ${file}<&- || exit
set -- "\${MAPFILE[@]}"
cd -P -- "$3" || exit
export -- PWD="$3" "\${@:5:$4}" || exit
unset OLDPWD
[[ $1 == yes ]] || exec 0</dev/null || exit
exec 2>&9 9>&-
echo go >&3
[[ $2 == yes ]] || exec 3>&-
shift "$((4 + $4))"
exec -- "$@"
`;

/** The program of a spare. */
export function spareArguments(bash: string, fileDescriptor: number): string[] {
  return [bash, "--norc", "--noprofile", "-c", script(fileDescriptor)];
}
