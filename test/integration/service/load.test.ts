import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeCodebase, makeSandbox } from "../../support/belongings.ts";
import { aWhile, eventually } from "../../support/eventually.ts";
import { GrpcClient } from "../../support/grpc-client.ts";
import { INSPECTABLE } from "../../support/inspector.ts";
import { rounds } from "../../support/rounds.ts";
import { TestServer } from "../../support/server.ts";
import { type Holdings, holdings, memory, sandboxLeftovers } from "../../support/server-process.ts";
import { batches, countCommands, execStreams, execs, type Place, session, uploads, watch } from "./traffic.ts";

/** Each with connections of its own and a sandbox of its own. */
const CLIENTS = 50;
const CODEBASES = 5;
/** Commands of each client; 200 in a soak. */
const COMMANDS = rounds(4);
const WARM_UP_COMMANDS = Math.max(2, COMMANDS / 4);
/** Of these kinds there are fewer, on the first sandboxes, beside the commands. */
const STREAMERS = 10;
const SESSIONS = 10;
const UPLOADERS = 5;
const WATCHERS = 5;

/** A command that leaks a kilobyte shows in a soak, one that leaks its box at once. */
const HEAP_SLACK_BYTES = 6 * 1024 * 1024;
/** The database may keep 32 MiB of its pages; compiled code makes a process grow for a while, ever more slowly. */
const RESIDENT_SLACK_BYTES = 48 * 1024 * 1024;
const LOOK_EVERY_MS = 200;
/** So many equal looks in a row are rest. */
const QUIET_SAMPLES = 5;

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start({
    settings: {
      limits: { requests_per_second: 0, concurrent_calls: 0 },
      runtime: { default_timeout: "2m" },
    },
    env: INSPECTABLE,
  });
});
afterAll(() => server?.[Symbol.asyncDispose]());

test(`${CLIENTS} clients run ${COMMANDS} commands each beside streams, sessions, uploads and watchers: every answer is right, and nothing grows or stays`, async () => {
  using control = new GrpcClient(server.grpc);
  const places = await makePlaces(control);
  const watched = new Map<Place, string>();

  const first = await run(places, watched, { wave: 1, commands: WARM_UP_COMMANDS });
  await checkFiles(control, places, first.lastNumbers);
  const before = { held: await settled(), memory: await memory(server) };

  const second = await run(places, watched, { wave: 2, commands: COMMANDS });
  await checkFiles(control, places, second.lastNumbers);
  expect(await countCommands(control)).toBe(first.commands + second.commands);

  await eventually(() => expectNoMore(before.held, holdings(server)));
  const after = await memory(server);
  console.log(`${second.commands} commands; before and after:`, before.memory, after);
  expect(after.heapBytes - before.memory.heapBytes).toBeLessThan(HEAP_SLACK_BYTES);
  expect(after.residentBytes - before.memory.residentBytes).toBeLessThan(RESIDENT_SLACK_BYTES);

  await destroyAll(control, places);
  expect(sandboxLeftovers(server)).toEqual({ mounts: [], controlGroups: [], processes: [], stateEntries: [] });
  expect(readdirSync(join(server.directory, "mounts/delta"))).toEqual([]);
  expect(readdirSync(join(server.directory, "codebases"))).toEqual([]);
  expect(server.log.filter(({ level }) => level === "error")).toEqual([]);
  expect(await server.stop()).toBe(0);
});

/** All as before, but for sockets: a box keeps one for its free waiter for a while after a command, and may have let go of it. */
function expectNoMore(before: Holdings, now: Holdings): void {
  const { socket: sockets = 0, ...descriptors } = before.descriptors;
  const { socket: socketsNow = 0, ...descriptorsNow } = now.descriptors;
  expect({ descriptors: descriptorsNow, threads: now.threads }).toEqual({ descriptors, threads: before.threads });
  expect(socketsNow).toBeLessThanOrEqual(sockets);
  expect(socketsNow).toBeGreaterThanOrEqual(sockets - CLIENTS);
}

/** What the server holds when nothing is under way any more: clients that left. */
async function settled(): Promise<Holdings> {
  const samples: Holdings[] = [];
  return await eventually(async () => {
    samples.push(holdings(server));
    const last = samples.slice(-QUIET_SAMPLES);
    await aWhile(LOOK_EVERY_MS);
    expect(last).toEqual(Array.from({ length: QUIET_SAMPLES }, () => last[0]));
    return last[0]!;
  });
}

/** Half of the sandboxes sync by themselves, half when asked. */
async function makePlaces(client: GrpcClient): Promise<readonly Place[]> {
  const codebases = await Promise.all(
    Array.from({ length: CODEBASES }, () => makeCodebase(client, { "README.md": "# A project\n" }, "loader")),
  );
  return await Promise.all(
    Array.from({ length: CLIENTS }, async (_, index): Promise<Place> => {
      const codebaseId = codebases[index % CODEBASES]!;
      const sync = syncsByItself({ index }) ? "SYNC_MODE_ON_EXEC" : "SYNC_MODE_MANUAL";
      return {
        index,
        codebaseId,
        sandboxId: await makeSandbox(client, codebaseId, { sync }),
        file: `own-${index}.txt`,
      };
    }),
  );
}

function syncsByItself({ index }: Pick<Place, "index">): boolean {
  return index % 2 === 0;
}

/** Everything at once, each client with connections of its own. */
async function run(
  places: readonly Place[],
  watched: Map<Place, string>,
  { wave, commands }: { readonly wave: number; readonly commands: number },
): Promise<{ readonly commands: number; readonly lastNumbers: ReadonlyMap<Place, string> }> {
  const numbersOf = (place: Place, kind: number): string[] =>
    Array.from({ length: commands }, (_, at) => `${at}${String(place.index).padStart(2, "0")}${kind}${wave}`);
  const busy: Promise<unknown>[] = [];
  const begin = (count: number, work: (client: GrpcClient, place: Place) => Promise<unknown>): void => {
    for (const place of places.slice(0, count)) busy.push(withClient((client) => work(client, place)));
  };
  begin(WATCHERS, async (client, place) => {
    // A sandbox that is watched has commands, streams and a session.
    const expected = { afterSequence: watched.get(place) ?? "0", commands: 3 * commands };
    watched.set(place, await watch(client, place, expected));
  });
  begin(CLIENTS, (client, place) => execs(client, place, numbersOf(place, 0)));
  begin(STREAMERS, (client, place) => execStreams(client, place, numbersOf(place, 1)));
  begin(SESSIONS, (client, place) => session(client, place, numbersOf(place, 2)));
  begin(UPLOADERS, (client, place) => uploads(client, place, numbersOf(place, 3)));
  begin(UPLOADERS, (client, place) => batches(client, place, numbersOf(place, 4)));
  const settled = await Promise.allSettled(busy);
  expect(settled.filter(({ status }) => status === "rejected")).toEqual([]);
  return {
    commands: (CLIENTS + STREAMERS + SESSIONS) * commands,
    lastNumbers: new Map(places.map((place) => [place, numbersOf(place, 0).at(-1)!])),
  };
}

async function withClient<T>(work: (client: GrpcClient) => Promise<T>): Promise<T> {
  using client = new GrpcClient(server.grpc, { ownConnections: true });
  return await work(client);
}

/** What the last command of each sandbox wrote is in the codebase: by itself, or when asked. */
async function checkFiles(
  client: GrpcClient,
  places: readonly Place[],
  lastNumbers: ReadonlyMap<Place, string>,
): Promise<void> {
  for (const place of places) {
    const { codebaseId, sandboxId, file } = place;
    if (!syncsByItself(place)) {
      const { outcomes } = await client.call("SandboxService", "ApplyChanges", { sandbox_id: sandboxId });
      expect(outcomes).toMatchObject([{ change: { path: `/${file}` }, applied: true, conflict: false }]);
    }
    expect((await client.download(codebaseId, file)).toString()).toBe(`${lastNumbers.get(place)}\n`);
  }
}

async function destroyAll(client: GrpcClient, places: readonly Place[]): Promise<void> {
  const destroy = ({ sandboxId }: Place) => client.call("SandboxService", "DestroySandbox", { sandbox_id: sandboxId });
  await Promise.all(places.map(destroy));
  const codebases = new Set(places.map(({ codebaseId }) => codebaseId));
  for (const id of codebases) await client.call("CodebaseService", "DeleteCodebase", { codebase_id: id });
}
