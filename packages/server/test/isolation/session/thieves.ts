import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../../../../../test/support/eventually.ts";
import type { Box } from "../../../src/isolation/backend/backend.ts";
import type { SessionEnd } from "../../../src/isolation/session/api.ts";
import { ShellSession } from "../../../src/isolation/session/session.ts";

// What an agent can start in its session to take the next command away from its shell. Both write `ready` when they are set.

/**
 * For bash: a subshell finds the channels that it inherited, stops the shell once it waits for a command, reads that command
 * itself, and says that it ended well.
 */
export function swallow(ready: string): string {
  return String.raw`(
    self=$(exec sh -c 'echo $PPID')
    for place in /proc/$self/fd/*; do
      number=${"$"}{place##*/}
      case $(readlink $place) in pipe:*) ;; *) continue;; esac
      [ $number -gt 9 ] || continue
      # The first of each; who runs the tests may have left more of them open.
      case $(grep flags: /proc/$self/fdinfo/$number) in *0) : ${"$"}{commands:=$number};; *1) : ${"$"}{answers:=$number};; esac
    done
    until grep -qE '^(0|63) 0x0 ' /proc/$$/syscall; do :; done
    kill -STOP $$
    echo taken > ${ready}
    while IFS= read -r -u $commands line; do
      case $line in *agentfense-status*) ;; *) continue;; esac
      line=${"$"}{line#*agentfense-status %s %s %s?n"'" }
      eval "printf 'agentfense-status %s 0 hB\n' ${"$"}{line%% *} >&$answers"
    done
  ) </dev/null >/dev/null 2>&1 &`;
}

/** A program opens the channels of the shell that started it, and keeps them. Tells whether it could. */
export function hold(ready: string): string {
  return thief(`hold()`, ready);
}

/** The same in a thread that outlives the first one, whose own list of descriptors then is empty. */
export function holdInThread(ready: string): string {
  return thief(
    `threading.Thread(target=hold).start(); ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)`,
    ready,
  );
}

/** The same with numbers and flags that a shell gives to what it puts away. */
export function holdPutAway(ready: string): string {
  return thief(`hold(lambda fd: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10))`, ready);
}

function thief(action: string, ready: string): string {
  return `python3 -c '
import ctypes, fcntl, os, platform, threading, time
shell = os.getppid()
def hold(put_away = lambda fd: fd):
    held = 0
    for name in os.listdir("/proc/%d/fd" % shell):
        place = "/proc/%d/fd/%s" % (shell, name)
        if name in "12" or not os.readlink(place).startswith("pipe:"): continue
        try: fd = os.open(place, os.O_RDWR)
        except PermissionError: continue
        held += 1
        if put_away(fd) != fd: os.close(fd)
    open("${ready}", "w").write("held" if held else "refused")
    time.sleep(1000)
${action}
' </dev/null >/dev/null 2>&1 &`;
}

/** What became of a theft in a session of this box: what the thief said, what the next command got, why the session ended. */
export async function steal(
  place: { readonly box: Box; readonly workspace: string; readonly shell: string },
  thief: (ready: string) => string,
): Promise<readonly [string, string | number, SessionEnd["reason"] | undefined]> {
  const ready = join(place.workspace, "ready");
  rmSync(ready, { force: true });
  const session = await ShellSession.open({
    box: place.box,
    id: "robbed",
    request: { shell: place.shell },
    env: {},
    workdir: "/workspace",
    defaults: { timeLimits: { defaultTimeoutMs: 60_000, maxTimeoutMs: 60_000 }, outputBytes: 1024 },
  });
  try {
    await session.exec({ command: thief("/workspace/ready") }).catch(() => {}); // it may be seen, and ended, at once
    const said = (): string => (existsSync(ready) ? readFileSync(ready, "utf8").trim() : "");
    await eventually(() => said() !== "" || session.closed !== undefined);
    const result = await session.exec({ command: "(exit 9)" }).then(
      ({ exitCode }) => exitCode,
      (error: { code: string }) => error.code,
    );
    return [said() || "held", result, session.closed?.reason];
  } finally {
    await session.close();
  }
}
