import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe } from "vitest";
import { type DockerEngine, reasonAgainstDocker } from "../../../../../test/support/docker-engine.ts";
import { dockerOfRun } from "../../../../../test/support/docker-of-run.ts";
import type { Box, BoxProcess, BoxSpec, ProcessExit } from "../../../src/isolation/backend/backend.ts";
import { DockerBackend, type DockerOptions } from "../../../src/isolation/docker/backend.ts";

export interface Finished extends ProcessExit {
  readonly stdout: string;
  readonly stderr: string;
}

/** The run's engine, and boxes of this suite's own in it, with a plain directory as their workspace. */
export class Arena {
  engine!: DockerEngine;
  /** In the name of every instance, and so of every container, of this suite and no other. */
  readonly name = randomBytes(8).toString("hex");
  readonly #cleanUps: (() => Promise<void>)[] = [];
  #boxes = 0;

  async open(): Promise<void> {
    this.engine = await dockerOfRun();
  }

  /** Removes what boxes that nobody destroyed have left. */
  async close(): Promise<void> {
    const left = await this.containers("{{.ID}}");
    if (left.length > 0) await this.engine.docker("rm", "-f", ...left);
  }

  async tidy(): Promise<void> {
    for (const cleanUp of this.#cleanUps.splice(0).reverse()) await cleanUp();
  }

  onTidy(cleanUp: () => Promise<void>): void {
    this.#cleanUps.push(cleanUp);
  }

  /** This suite's containers, whether they run or not. */
  async containers(format = "{{.Names}}"): Promise<string[]> {
    const lines = await this.engine.docker("ps", "-a", "--filter", `name=${this.name}`, "--format", format);
    return lines.split("\n").filter((line) => line !== "");
  }

  /** The one container that there is. */
  async container(): Promise<string> {
    const [only, ...others] = await this.containers("{{.ID}}");
    if (only === undefined || others.length > 0) throw new Error("there is not one container");
    return only;
  }

  async backend(options: Partial<DockerOptions> = {}): Promise<DockerBackend> {
    const { socketPath, image } = this.engine;
    const directory = await this.directory();
    const backend = await DockerBackend.open({ instance: this.name, directory, socketPath, image, ...options });
    this.onTidy(() => backend[Symbol.asyncDispose]());
    return backend;
  }

  async directory(): Promise<string> {
    const path = await mkdtemp(join(tmpdir(), "agentfense-box-"));
    await chmod(path, 0o777);
    this.onTidy(() => rm(path, { recursive: true, force: true }));
    return path;
  }

  async spec(changes: Partial<BoxSpec> = {}): Promise<BoxSpec> {
    return {
      id: `box-${++this.#boxes}`,
      mounts: changes.mounts ?? [{ source: await this.directory(), target: "/workspace" }],
      limits: { pids: 200, memoryBytes: 512 * 1024 ** 2 },
      network: "none",
      env: {},
      hostname: "sandbox",
      tmpBytes: 64 * 1024 ** 2,
      readOnlyPaths: [],
      ...changes,
    };
  }

  /** A box that runs. */
  async box(changes: Partial<BoxSpec> = {}): Promise<Box> {
    const box = await (await this.backend()).createBox(await this.spec(changes));
    await box.start();
    return box;
  }
}

/** A suite against a real engine; where none can be started its title says why. */
export function describeDocker(title: string, suite: (arena: Arena) => void): void {
  const reason = reasonAgainstDocker();
  describe.skipIf(reason !== undefined)(reason === undefined ? title : `${title} (skipped: ${reason})`, () => {
    const arena = new Arena();
    beforeAll(() => arena.open());
    afterEach(() => arena.tidy());
    afterAll(() => arena.close());
    suite(arena);
  });
}

export function bash(
  box: Box,
  command: string,
  options: { stdin?: boolean; workdir?: string } = {},
): Promise<BoxProcess> {
  return box.run({
    argv: ["/bin/bash", "-c", command],
    env: {},
    workdir: options.workdir ?? "/workspace",
    stdin: options.stdin ?? false,
  });
}

export async function finish(process: BoxProcess): Promise<Finished> {
  const [stdout, stderr, exit] = await Promise.all([buffer(process.stdout), buffer(process.stderr), process.exit]);
  return { ...exit, stdout: stdout.toString(), stderr: stderr.toString() };
}

export async function output(box: Box, command: string): Promise<Finished> {
  return await finish(await bash(box, command));
}
