import { readFileSync } from "node:fs";
import { type Architecture, SYSCALL_NUMBERS } from "../seccomp/numbers.ts";
import { memoryFile } from "./descriptors.ts";

const CALLS = [
  "capset",
  "clone",
  "clone3",
  "close",
  "close_range",
  "dup3",
  "execve",
  "exit_group",
  "fcntl",
  "ioctl",
  "ioprio_get",
  "openat",
  "prctl",
  "pread64",
  "prlimit64",
  "recvmsg",
  "sched_getaffinity",
  "sched_getattr",
  "sendmsg",
  "setgroups",
  "setresgid",
  "setresuid",
  "setsid",
  "write",
];

const MESSAGES = read(new URL("perl/messages.pl", import.meta.url));
const SCRIPTS = {
  launcher: read(new URL("perl/launcher.pl", import.meta.url)),
  keeper: read(new URL("perl/keeper.pl", import.meta.url)),
  sockets: read(new URL("perl/sockets.pl", import.meta.url)),
};

/** The script as a descriptor for perl's standard input: not on a command line, which everybody would see, and in no file. */
export function scriptFile(name: keyof typeof SCRIPTS): number {
  return memoryFile(name, Buffer.from(scriptText(name)));
}

/** `%NR` holds the numbers of the system calls on this machine. */
export function scriptText(name: keyof typeof SCRIPTS): string {
  const numbers = SYSCALL_NUMBERS[process.arch as Architecture];
  const rows = CALLS.map((call) => `${call} => ${numbers.get(call)}`);
  return `my %NR = (${rows.join(", ")});\n${MESSAGES}\n${SCRIPTS[name]}`;
}

function read(url: URL): string {
  return readFileSync(url, "utf8");
}
