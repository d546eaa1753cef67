import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

export const HOME = "/home/gem";

/** A command of the fake: a real process in a box of its own, whose home is a directory of the test. */
export class FakeCommand {
  readonly command: string;
  stdout = "";
  stderr = "";
  /** In the order in which it came. */
  combined = "";
  exitCode: number | undefined;
  killed = false;
  timedOut = false;
  readonly done: Promise<void>;
  readonly #child: ChildProcess;
  #news = Promise.withResolvers<void>();

  constructor(
    home: string,
    command: string,
    {
      env = {},
      hardSeconds,
    }: { readonly env?: Record<string, string>; readonly hardSeconds?: number | undefined } = {},
  ) {
    this.command = command;
    this.#child = spawn("bwrap", [...boxArguments(home, env), "bash", "-c", command], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env.PATH! },
      // A group of its own: a bwrap that is killed before it has bound its child to itself leaves it behind.
      detached: true,
    });
    for (const name of ["stdout", "stderr"] as const) {
      this.#child[name]!.setEncoding("utf8").on("data", (text: string) => {
        this[name] += text;
        this.combined += text;
        this.#ring();
      });
    }
    this.done = this.#end(hardSeconds);
  }

  get isRunning(): boolean {
    return this.exitCode === undefined;
  }

  get news(): Promise<void> {
    return this.isRunning ? this.#news.promise : Promise.resolve();
  }

  kill(): void {
    this.killed ||= this.isRunning;
    this.#killGroup();
  }

  #killGroup(): void {
    if (!this.isRunning || this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch (error) {
      // It has ended, and somebody still holds its outputs.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }

  async #end(hardSeconds: number | undefined): Promise<void> {
    const timer = setTimeout(
      () => {
        this.timedOut = true;
        this.#killGroup();
      },
      (hardSeconds ?? 600) * 1000,
    );
    const [code] = (await once(this.#child, "close")) as [number | null];
    clearTimeout(timer);
    this.exitCode = code ?? 137;
    this.#ring();
  }

  #ring(): void {
    const heard = this.#news;
    this.#news = Promise.withResolvers();
    heard.resolve();
  }
}

function boxArguments(home: string, env: Readonly<Record<string, string>>): string[] {
  return [
    ...["--ro-bind", "/", "/", "--tmpfs", "/tmp", "--tmpfs", "/home", "--bind", home, HOME, "--chdir", HOME],
    ...["--proc", "/proc", "--dev", "/dev", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"],
    ...["--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--setenv", "HOME", HOME, "--setenv", "LANG", "C.UTF-8"],
    ...Object.entries(env).flatMap(([name, value]) => ["--setenv", name, value]),
    "--",
  ];
}
