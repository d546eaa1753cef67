import { readdirSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exec, makeCodebase, makeSandbox } from "../../../support/belongings.ts";
import { eventually } from "../../../support/eventually.ts";
import { GrpcClient } from "../../../support/grpc-client.ts";
import { GuardedServer, type Party } from "../../../support/owners.ts";

// One sandbox makes the server hold as many descriptors as it can. Its share is bounded, and what others, and the end of its
// own commands, need is never part of it.

const DESCRIPTORS = 1024;
/** A half for what sandboxes have open, of which one gets a fifth; a quarter for directories. */
const ATTACKERS_MOST = DESCRIPTORS / 2 / 5 + DESCRIPTORS / 4;
const PROCESSES = 4;
const FILES = 800;

/** Each process knows its files by O_PATH, and then removes them. */
const HOARD = `
import os, time
for process in range(${PROCESSES}):
    if os.fork() > 0: continue
    known = []
    for number in range(${FILES}):
        name = f"{process}-{number}"
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT))
        known.append(os.open(name, os.O_PATH))
        os.unlink(name)
    os.close(os.open(f"hoarded-{process}", os.O_WRONLY | os.O_CREAT))
    time.sleep(600)
time.sleep(600)
`;

let guarded: GuardedServer;
beforeAll(async () => {
  guarded = await GuardedServer.start({
    descriptors: DESCRIPTORS,
    settings: { runtime: { default_timeout: "2m", max_timeout: "10m" } },
  });
});
afterAll(() => guarded?.[Symbol.asyncDispose]());

async function sandboxOf({ grpc }: Party): Promise<string> {
  return await makeSandbox(grpc, await makeCodebase(grpc, { file: "content\n", "hoard.py": HOARD }));
}

const held = (): number => readdirSync(`/proc/${guarded.server.pid}/fd`).length;

test("RES-18 a sandbox that hoards removed files takes a bounded share of the server's descriptors, and its time limit holds", async () => {
  const { alice, mallory, server } = guarded;
  const neighbour = await sandboxOf(alice);
  const attacker = await sandboxOf(mallory);
  await exec(mallory.grpc, attacker, "true");
  await exec(alice.grpc, neighbour, "true");
  const before = held();

  const hoarding = exec(mallory.grpc, attacker, "python3 hoard.py", { timeout: { seconds: "300" } }).catch(() => {});
  await eventually(async () => {
    const { stdout } = await exec(mallory.grpc, attacker, "ls");
    expect(stdout.match(/hoarded/g)).toHaveLength(PROCESSES);
  });
  // Besides its share, the commands that run have pipes.
  expect(held() - before).toBeLessThan(ATTACKERS_MOST + 64);

  expect(await exec(alice.grpc, neighbour, "cat file")).toMatchObject({ stdout: "content\n", exit_code: 0 });
  const connections = Array.from(
    { length: 32 },
    () => new GrpcClient(server.grpc, { key: alice.key, ownConnections: true }),
  );
  try {
    const answers = connections.map((client) => client.call("SandboxService", "GetSandbox", { sandbox_id: neighbour }));
    expect((await Promise.all(answers)).map(({ id }) => id)).toEqual(Array(connections.length).fill(neighbour));
  } finally {
    for (const client of connections) client[Symbol.dispose]();
  }
  const request = { sandbox_id: attacker, command: "sleep 600", timeout: { seconds: "1" } };
  const messages = await mallory.grpc.collect("SandboxService", "ExecStream", request);
  expect(messages.at(-1)).toMatchObject({ timed_out: true });

  await mallory.grpc.call("SandboxService", "DestroySandbox", { sandbox_id: attacker });
  await hoarding;
  await eventually(() => expect(held()).toBeLessThanOrEqual(before));
});

test("RES-18 an orphan that made room is ESTALE, and the newest are still there", async () => {
  const { mallory } = guarded;
  const sandbox = await sandboxOf(mallory);
  const code = `
import os
known = []
for number in range(${FILES}):
    os.close(os.open("file-%d" % number, os.O_WRONLY | os.O_CREAT))
    known.append(os.open("file-%d" % number, os.O_PATH))
    os.unlink("file-%d" % number)
def outcome(fd):
    try: os.close(os.open("/proc/self/fd/%d" % fd, os.O_RDONLY)); return "ok"
    except OSError as error: return os.strerror(error.errno)
print(outcome(known[0]), outcome(known[-1]), sep=", ")
`;
  const { stdout } = await exec(mallory.grpc, sandbox, `python3 -c '${code}'`);
  expect(stdout).toBe("Stale file handle, ok\n");
  await mallory.grpc.call("SandboxService", "DestroySandbox", { sandbox_id: sandbox });
});
