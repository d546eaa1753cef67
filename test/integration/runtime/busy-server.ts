import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { openIsolation } from "@agentfense/server/isolation";

// A server that never rests, for tests that kill it: `node busy-server.ts STATE PROJECT DELTAS RUNTIME [SOCKET IMAGE]`.
// Prints a letter for every step, so that the killer can choose its moment.

const [stateDirectory, project, deltas, runtime, socketPath, image] = process.argv.slice(2) as [
  string,
  string,
  string,
  "bwrap" | "docker",
  string?,
  string?,
];
const step = (letter: string): boolean => process.stdout.write(letter);

const isolation = await openIsolation({
  stateDirectory,
  runtimes: [runtime],
  ...(socketPath === undefined ? {} : { docker: { socketPath } }),
});
step("O");

async function worker(): Promise<never> {
  for (;;) {
    const delta = await mkdtemp(join(deltas, "delta-"));
    const rules = [{ pattern: "**/*", permission: "write" }] as const;
    const sandbox = await isolation.create({
      runtime,
      ...(image === undefined ? {} : { image }),
      workspaces: [{ lowers: [project], delta, rules }],
      limits: { memoryBytes: 256 * 1024 * 1024, pids: 64 },
    });
    step("c");
    await sandbox.start();
    step("s");
    const long = sandbox.exec({ command: "setsid sleep 300 & sleep 300", timeoutMs: 60_000 }).catch(() => {});
    const session = await sandbox.session();
    step("n");
    await session.exec({ command: "sleep 300 & echo x > made" });
    step("e");
    await sandbox.destroy();
    await long;
    step("d");
  }
}

await Promise.all([worker(), worker(), worker()]);
