import { existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { HANG_MS } from "../../../../../test/support/eventually.ts";
import type { SandboxEvent } from "../../../src/isolation/sandbox/api.ts";
import type { SessionEnd, SessionRequest } from "../../../src/isolation/session/api.ts";
import { ShellSession } from "../../../src/isolation/session/session.ts";
import { LocalBox, type LocalShell } from "./local-shell.ts";

export interface ShellUnderTest {
  readonly title: string;
  readonly path: string;
  readonly kind: "bash" | "dash" | "zsh";
}

/** A directory for everything one test file makes. */
export const place = mkdtempSync(join(tmpdir(), "agentfense-session-"));
afterAll(() => rmSync(place, { recursive: true, force: true }));

symlinkSync("/bin/bash", join(place, "sh"));

const candidates: readonly ShellUnderTest[] = [
  { title: "bash", path: "/bin/bash", kind: "bash" },
  { title: "sh that is bash", path: join(place, "sh"), kind: "bash" },
  { title: "dash", path: "/bin/dash", kind: "dash" },
  { title: "sh", path: "/bin/sh", kind: "dash" },
  { title: "zsh", path: "/bin/zsh", kind: "zsh" },
];

export const shells = candidates.filter(({ title, path }) => {
  const there = existsSync(path);
  if (!there) console.warn(`no sessions are tested with ${title}: this machine has no ${path}`);
  return there;
});

export interface Opened extends AsyncDisposable {
  readonly session: ShellSession;
  readonly process: LocalShell;
  readonly events: SandboxEvent[];
  readonly ends: SessionEnd[];
  /** Runs a command: what it printed, and its exit code. */
  run(command: string, timeoutMs?: number): Promise<{ out: string; err: string; code: number }>;
  /** The standard output alone. */
  out(command: string): Promise<string>;
}

export async function openSession(
  shell: Pick<ShellUnderTest, "path">,
  options: { request?: SessionRequest; outputBytes?: number; timeoutMs?: number; stageMs?: number } = {},
): Promise<Opened> {
  const box = new LocalBox([shell.path]);
  const events: SandboxEvent[] = [];
  const ends: SessionEnd[] = [];
  const session = await ShellSession.open({
    box,
    id: "session-1",
    request: options.request ?? {},
    env: {},
    workdir: place,
    defaults: {
      timeLimits: {
        defaultTimeoutMs: options.timeoutMs ?? 10_000,
        maxTimeoutMs: HANG_MS,
        maxTimeoutSetting: "the test",
      },
      outputBytes: options.outputBytes ?? 10 * 1024 * 1024,
    },
    stageMs: options.stageMs,
    onEvent: (event) => events.push(event),
    onClosed: (end) => ends.push(end),
  });
  const run = async (command: string, timeoutMs?: number) => {
    const result = await session.exec(timeoutMs === undefined ? { command } : { command, timeoutMs });
    return { out: result.stdout.toString(), err: result.stderr.toString(), code: result.exitCode };
  };
  return {
    session,
    process: box.opened[0]!,
    events,
    ends,
    run,
    out: async (command) => (await run(command)).out,
    [Symbol.asyncDispose]: () => session.close(),
  };
}

/** The code of the error a promise rejects with. */
export async function errorCode(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "resolved",
    (error: { code?: string }) => error.code ?? String(error),
  );
}
