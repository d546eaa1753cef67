import { execFile } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { Random } from "../../conformance/model/random.ts";
import { aWhile, eventually, withoutHanging } from "../../support/eventually.ts";
import { GrpcClient } from "../../support/grpc-client.ts";
import { RestClient } from "../../support/rest-client.ts";
import { rounds } from "../../support/rounds.ts";
import { CLI, TestServer } from "../../support/server.ts";
import { type Clients, World } from "./durability/world.ts";
import { expectGone, type Footprint, footprint } from "./machine.ts";

const ROUNDS = rounds(2);
const LONGEST_LIFE_MS = 1500;
const reason = process.geteuid?.() === 0 ? "" : " (skipped: what is left behind is looked for as root)";

describe.skipIf(reason !== "")(`a server that is killed at any moment${reason}`, () => {
  test("API-35 has everything that was acknowledged after its restart, and nothing by halves", async () => {
    const seed = Number(process.env.AGENTFENSE_SEED ?? Date.now() % 2 ** 31);
    const random = new Random(seed);
    await using place = await Place.make();
    const world = new World(random.below(2 ** 31), place.directory);
    for (let round = 1; round <= ROUNDS; round++) {
      const livesMs = random.below(LONGEST_LIFE_MS);
      const about = `seed ${seed}, round ${round} of ${ROUNDS}, killed after ${livesMs} ms`;
      try {
        const dead = await place.live((clients, killed) =>
          world.work(clients, async (announce) => {
            await aWhile(livesMs);
            announce();
            await killed();
          }),
        );
        await place.examine((clients) => world.settle(clients), dead);
      } catch (error) {
        throw new Error(`${about}:\n${(error as Error).message}`, { cause: error });
      }
      console.log(`${about}: ${JSON.stringify(world.tally)} so far`);
    }
  });

  // The kernel holds a directory for a process in the box that waits for the server, which waits for the directory.
  test("dies, although its threads and its sandboxes wait for each other", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      await using server = await TestServer.start();
      using client = new GrpcClient(server.grpc);
      const { id } = await client.call("CodebaseService", "CreateCodebase", {
        name: "project",
        owner_id: "somebody",
      });
      await client.upload(String(id), "a0", "first");
      const permissions = [{ pattern: "**", permission: "PERMISSION_WRITE" }];
      const creation = { codebase_id: id, permissions, sync: "SYNC_MODE_MANUAL" };
      const { id: sandbox } = await client.call("SandboxService", "CreateSandbox", creation);
      await client.call("SandboxService", "StartSandbox", { sandbox_id: sandbox });
      const command = "while :; do : > mine; rm -f mine; : > a0; done";
      const busy = [1, 2, 3].map(() => client.call("SandboxService", "Exec", { sandbox_id: sandbox, command }));
      const uploads = (async () => {
        for (let count = 0; ; count++) await client.upload(String(id), `a${count % 3}`, `content ${count}`);
      })();
      const calls = Promise.allSettled([...busy, uploads]);
      await aWhile(500);
      await killed(server);
      await calls;
    }
  });
});

/** A process that is killed is gone soon after, or something of it hangs in the kernel. */
async function killed(server: TestServer): Promise<void> {
  const ended = await withoutHanging(() => server.stop("SIGKILL")).catch(() => `still there: ${threadsOf(server.pid)}`);
  expect(ended).toBe("SIGKILL");
}

function threadsOf(pid: number): string {
  return globSync(`/proc/${pid}/task/*/wchan`)
    .map((file) => readFileSync(file, "utf8"))
    .join(" ");
}

/** A directory with one server after the other. */
class Place implements AsyncDisposable {
  readonly directory: string;
  readonly #keys: { readonly admin: string; readonly user: string };
  #server: TestServer;

  private constructor(directory: string, server: TestServer, keys: { admin: string; user: string }) {
    this.directory = directory;
    this.#server = server;
    this.#keys = keys;
  }

  static async make(): Promise<Place> {
    const directory = mkdtempSync(join(tmpdir(), "agentfense-durability-"));
    const server = await start(directory);
    const create = ["key", "create", "--config", server.configFile, "--owner"];
    const [admin, user] = [
      await commandLine([...create, "operator", "--role", "admin", "--json"]),
      await commandLine([...create, "worker", "--json"]),
    ].map((output) => String((JSON.parse(output) as { secret: string }).secret));
    return new Place(directory, server, { admin: admin!, user: user! });
  }

  /** Lets work go on until it has killed the server. */
  async live(work: (clients: Clients, kill: () => Promise<void>) => Promise<unknown>): Promise<Footprint> {
    using clients = this.#clients();
    let left: Footprint | undefined;
    await work(clients, async () => {
      left = footprint(this.#server.pid);
      await killed(this.#server);
    });
    return left!;
  }

  /** Starts the next server and looks at what it found. */
  async examine(check: (clients: Clients) => Promise<void>, dead: Footprint): Promise<void> {
    this.#server = await start(this.directory);
    using clients = this.#clients();
    await ready(clients.audit);
    await check(clients);
    const verdict = await commandLine(["audit", "verify", "--config", this.#server.configFile, "--json"]);
    expect(JSON.parse(verdict)).toMatchObject({ ok: true });
    await expectGone(dead);
    const complaints = this.#server.log.filter(({ level }) => level === "error" || level === "fatal");
    expect(complaints).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }

  #clients(): Clients & Disposable {
    const user = new GrpcClient(this.#server.grpc, { key: this.#keys.user });
    const admin = new GrpcClient(this.#server.grpc, { key: this.#keys.admin });
    const audit = new RestClient(this.#server.http, { key: this.#keys.admin });
    return {
      user,
      admin,
      audit,
      [Symbol.dispose]: () => {
        user[Symbol.dispose]();
        admin[Symbol.dispose]();
      },
    };
  }
}

function start(directory: string): Promise<TestServer> {
  return TestServer.start({
    directory,
    settings: { auth: { keys: "required" }, limits: { requests_per_second: 0 } },
  });
}

async function ready(rest: RestClient): Promise<void> {
  await eventually(async () => expect((await rest.get("/readyz")).status).toBe(200));
}

async function commandLine(args: readonly string[]): Promise<string> {
  return (await promisify(execFile)(process.execPath, [CLI, ...args])).stdout;
}
