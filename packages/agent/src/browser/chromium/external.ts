import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, constants, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { BrowserError } from "../../errors.ts";
import { type ChromiumProcess, COMMON_FLAGS, INSTALL_HINT, MAX_MESSAGE_BYTES, USUAL_PLACES } from "./process.ts";
import { messagesOf } from "./transport.ts";

/** The pipe is descriptor 3 for what it reads and 4 for what it writes. */
const STDIO = ["ignore", "ignore", "pipe", "pipe", "pipe"] as const;
const COMPLAINT_BYTES = 400;
const COMPLAINT_WAIT_MS = 500;

/**
 * A Chromium on this machine with a new profile. Its environment is empty but for what programs need, and all it can
 * connect to is the proxy.
 */
export async function startExternal(options: {
  readonly executablePath?: string | undefined;
  readonly proxy: string;
}): Promise<ChromiumProcess> {
  const program = await findProgram(options.executablePath);
  const home = await mkdtemp(join(tmpdir(), "agentfense-browser-"));
  const child = spawn(program, externalFlags(home, options.proxy), {
    stdio: [...STDIO],
    cwd: home,
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: home, TMPDIR: home, LANG: "C.UTF-8" },
    // A process group of its own, so that none of its processes is left.
    detached: true,
  });
  // At once, while the number cannot be anybody else's: its children may have outlived it.
  child.once("exit", () => killGroup(child.pid));
  const ended = once(child, "close").catch((error: unknown) => error);
  const [complaints, input, output] = child.stdio.slice(2) as [Readable, Writable, Readable];
  // A browser that ends while it is written to is not an error of ours.
  for (const stream of [complaints, input, output]) stream.on("error", () => {});
  let complaint: Uint8Array = Buffer.of();
  complaints.on("data", (data: Buffer) => {
    complaint = Buffer.concat([complaint, data]).subarray(-COMPLAINT_BYTES);
  });
  /** What it complained about before it ended comes last. */
  async function* messages(): AsyncGenerator<Buffer, void, undefined> {
    yield* messagesOf(output, MAX_MESSAGE_BYTES);
    await Promise.race([ended, delay(COMPLAINT_WAIT_MS)]);
    if (complaint.length > 0) yield Buffer.from(complaint);
  }
  return {
    messages: messages(),
    downloadDirectory: join(home, "downloads"),
    write: (data) =>
      new Promise((resolve, reject) => input.write(data, (error) => (error ? reject(error) : resolve()))),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) killGroup(child.pid);
      for (const stream of [complaints, input, output]) stream.destroy();
      await ended;
      // Its children may be on their last breath.
      await rm(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    },
  };
}

function externalFlags(home: string, proxy: string): string[] {
  return [
    ...COMMON_FLAGS,
    // Chromium refuses to build its own sandbox for root.
    ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
    `--user-data-dir=${join(home, "profile")}`,
    `--proxy-server=${proxy}`,
    "--proxy-bypass-list=<-loopback>",
    // Names are looked up by the proxy, which also looks at what they mean.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
  ];
}

async function findProgram(executablePath: string | undefined): Promise<string> {
  const places = executablePath === undefined ? USUAL_PLACES : [executablePath];
  for (const place of places) {
    const isProgram = await access(place, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isProgram) return place;
  }
  throw new BrowserError("UNAVAILABLE", `there is no Chromium: ${places.join(", ")}`, { hint: INSTALL_HINT });
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
