import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";

const cli = join(import.meta.dirname, "../../src/cli.ts");
const AGENT = `#!/usr/bin/python3
import os, signal, sys
def size():
    columns, rows = os.get_terminal_size()
    return f"{columns}x{rows}"
signal.signal(signal.SIGWINCH, lambda *_: print("size", size(), flush=True))
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
print("ready", size(), flush=True)
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "exit": sys.exit(int(rest))
    if word == "die": signal.signal(signal.SIGINT, signal.SIG_DFL)
    print("heard", line.strip(), flush=True)
`;
const reason = (() => {
  try {
    execFileSync("tmux", ["-V"], { stdio: "ignore" });
    return undefined;
  } catch {
    return "tmux is not installed";
  }
})();
if (reason !== undefined) console.log(`agents in tmux are not tried: ${reason}`);

/** A shell of a user in tmux, in a project, where "worker" is an agent. */
function openTmux() {
  const top = mkdtempSync(join(tmpdir(), "agentfense-tmux-"));
  const tmux = (...args: string[]) =>
    execFileSync("tmux", ["-S", join(top, "socket"), "-f", "/dev/null", ...args], { encoding: "utf8" });
  onTestFinished(() => {
    tmux("kill-server");
    rmSync(top, { recursive: true, force: true });
  });
  for (const name of ["project", "bin", "state"]) mkdirSync(join(top, name));
  writeFileSync(join(top, "bin/worker"), AGENT);
  chmodSync(join(top, "bin/worker"), 0o755);
  writeFileSync(join(top, "worker.yaml"), "program: worker\n");
  const env = {
    PATH: `${join(top, "bin")}:/usr/bin:/bin`,
    XDG_STATE_HOME: join(top, "state"),
    PS1: "[$?] $ ",
    LC_ALL: "C",
  };
  const start = ["env", ...Object.entries(env).map(([name, value]) => `${name}=${value}`)];
  const shell = [...start, "bash", "--noprofile", "--norc", "--noediting", "-i"];
  tmux("new-session", "-d", "-x", "100", "-y", "30", "-c", join(top, "project"), ...shell);
  tmux("set-option", "-g", "status", "off");
  const type = (...keys: string[]): void => void tmux("send-keys", ...keys);
  return {
    type,
    agent: `${process.execPath} ${cli} agent worker --profile ${join(top, "worker.yaml")}`,
    resize: (columns: number, rows: number) => tmux("resize-window", "-x", `${columns}`, "-y", `${rows}`),
    sees: (text: string | RegExp) =>
      eventually(() => expect(tmux("capture-pane", "-p", "-J", "-S", "-")).toMatch(text)),
  };
}

test.skipIf(reason !== undefined)(
  "an agent in tmux learns of its size, gets Ctrl-C, stops with Ctrl-Z, goes on with fg, and its exit code is the command's",
  async () => {
    const { type, agent, resize, sees } = openTmux();
    type(agent, "Enter");
    await sees("ready 100x30");
    resize(80, 24);
    await sees("size 80x24");
    type("C-c");
    await sees("interrupted");

    type("C-z");
    await sees(/Stopped/);
    type("echo $((40 + 2)) of the shell", "Enter");
    await sees("42 of the shell");
    resize(90, 20);
    type("fg", "Enter");
    await sees("size 90x20");
    type("again", "Enter");
    await sees("heard again");

    // The prompt has the last command's exit code.
    type("exit 7", "Enter");
    await sees(/\n\[7\] \$/);
    type(agent, "Enter");
    await sees("ready 90x20");
    type("die", "Enter");
    await sees("heard die");
    type("C-c");
    await sees(/\n\[130\] \$/);
  },
);
