import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BoxCommand, BoxSpec, StartOptions } from "../../../src/isolation/backend/backend.ts";
import { BwrapBackend } from "../../../src/isolation/bwrap/backend.ts";
import type { BwrapBox } from "../../../src/isolation/bwrap/box.ts";
import type { LimitGroup, LimitHost } from "../../../src/isolation/limits/limits.ts";
import type { LogLine } from "../../../src/isolation/log.ts";

/** A backend with one running box around an empty directory. */
export interface BoxFixture extends AsyncDisposable {
  readonly backend: BwrapBackend;
  readonly box: BwrapBox;
  readonly directory: string;
  readonly log: LogLine[];
  /** Runs a line of shell to its end. */
  sh(line: string, more?: Partial<BoxCommand> & { input?: string }): Promise<Ended>;
  anotherBox(more?: Partial<BoxSpec>, start?: StartOptions): Promise<BwrapBox>;
}

export interface Ended {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Limits that limit nothing, with what a test wants to be there. */
export function freeLimits(group: Partial<LimitGroup> = {}): LimitHost {
  return {
    kind: "rlimits",
    degradations: [],
    createGroup: async () => ({
      entrances: [],
      rlimits: [],
      makeRoom: () => {},
      oomKills: async () => 0,
      usage: async () => ({}),
      kill: async () => {},
      remove: async () => {},
      ...group,
    }),
    removeOrphans: async () => {},
    close: async () => {},
  };
}

export async function openBoxFixture(
  options: { spec?: Partial<BoxSpec>; limits?: LimitHost; instance?: string } = {},
): Promise<BoxFixture> {
  const directory = await mkdtemp(join(tmpdir(), "agentfense-bwrap-"));
  await chmod(directory, 0o777); // the box's user is somebody else when the server is root
  const log: LogLine[] = [];
  const backend = await BwrapBackend.open({
    instance: options.instance ?? `test-${process.pid}`,
    limits: options.limits ?? freeLimits(),
    log: (line) => log.push(line),
  });
  const anotherBox = async (more: Partial<BoxSpec> = {}, start: StartOptions = {}): Promise<BwrapBox> => {
    const created = await backend.createBox({
      id: "test",
      mounts: [{ source: directory, target: "/workspace" }],
      limits: {},
      network: "none",
      env: {},
      hostname: "box",
      tmpBytes: 4 * 1024 * 1024,
      readOnlyPaths: [],
      ...more,
    });
    await created.start(start);
    return created;
  };
  const hold = setInterval(() => {}, 1000); // a backend keeps no process alive
  const box = await anotherBox(options.spec);
  return {
    backend,
    box,
    directory,
    log,
    anotherBox,
    sh: (line, more) => shell(box, line, more),
    [Symbol.asyncDispose]: async () => {
      await backend[Symbol.asyncDispose]();
      clearInterval(hold);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export async function shell(
  box: BwrapBox,
  line: string,
  more: Partial<BoxCommand> & { input?: string } = {},
): Promise<Ended> {
  const process = await box.run({
    argv: ["/bin/bash", "-c", line],
    env: {},
    workdir: "/workspace",
    stdin: more.input !== undefined,
    ...more,
  });
  if (more.input !== undefined) process.stdin?.end(more.input);
  const [stdout, stderr, exit] = await Promise.all([textOf(process.stdout), textOf(process.stderr), process.exit]);
  return { exitCode: exit.exitCode, stdout, stderr };
}

export async function textOf(stream: AsyncIterable<unknown>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
