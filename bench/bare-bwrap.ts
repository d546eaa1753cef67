import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const TIMER = fileURLToPath(new URL("clients/time-command.sh", import.meta.url));
const ARGUMENTS = [
  ...["--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr"],
  ...["bin", "sbin", "lib", "lib64"].flatMap((name) => ["--symlink", `usr/${name}`, `/${name}`]),
  ...["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--", "/usr/bin/true"],
];

/**
 * What a command costs without us: a bwrap of the fewest arguments, started by a small shell that takes the time itself.
 * (Started from this process it would cost more: forking a process takes time by its size.)
 */
export class BareBwrap implements AsyncDisposable {
  readonly #shell = spawn("/bin/bash", [TIMER, "bwrap", ...ARGUMENTS], { stdio: ["pipe", "pipe", "inherit"] });
  readonly #lines = createInterface({ input: this.#shell.stdout })[Symbol.asyncIterator]();

  async milliseconds(): Promise<number> {
    this.#shell.stdin.write("\n");
    const { value, done } = await this.#lines.next();
    if (done) throw new Error("bare bwrap failed");
    return Number(value) / 1000;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#shell, "exit");
    this.#shell.stdin.end();
    await exited;
  }
}
