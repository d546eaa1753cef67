import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { EmbeddedEngine, type Sandbox, SandboxClient } from "agentfense";
import { MockEngine } from "agentfense/testing";
import { afterAll, beforeAll } from "vitest";
import { TestServer } from "./server.ts";

/** What sandboxes are made of. */
export type World = "embedded" | "remote" | "mock";

/** Where the sandboxes of a world are made; part of the options of everything that opens one. */
export type Place = Pick<NonNullable<Parameters<typeof Sandbox.fromLocal>[1]>, "engine" | "endpoint">;

interface Scene extends AsyncDisposable {
  readonly place: Place;
}

const SCENES: Readonly<Record<World, () => Promise<Scene>>> = {
  embedded: async () => {
    const engine = await EmbeddedEngine.open();
    return { place: { engine }, [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose]() };
  },
  remote: async () => {
    const server = await TestServer.start();
    return { place: { endpoint: server.grpc }, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
  },
  mock: async () => {
    const engine = new MockEngine();
    return { place: { engine }, [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose]() };
  },
};

/** What the tests of one world have to work with. */
export interface Stage {
  readonly place: Place;
  readonly client: SandboxClient;
  /** A directory of its own with these files. */
  project(files?: Readonly<Record<string, string>>): string;
}

/** Sets a world up before the tests of this block, and takes it away after them. */
export function setStage(world: World): Stage {
  let base: string;
  let scene: Scene;
  let client: SandboxClient;
  beforeAll(async () => {
    base = mkdtempSync(join(tmpdir(), "agentfense-scene-"));
    scene = await SCENES[world]();
    client = new SandboxClient(scene.place);
  });
  afterAll(async () => {
    await client?.close();
    await scene?.[Symbol.asyncDispose]();
    rmSync(base, { recursive: true, force: true });
  });
  return {
    get place() {
      return scene.place;
    },
    get client() {
      return client;
    },
    project(files = {}) {
      const directory = mkdtempSync(join(base, "project-"));
      for (const [path, content] of Object.entries(files)) {
        mkdirSync(dirname(join(directory, path)), { recursive: true });
        writeFileSync(join(directory, path), content);
      }
      return directory;
    },
  };
}
