import { once } from "node:events";
import { openServer, type RunningServer } from "@agentfense/server";
import type { ServerConfig } from "@agentfense/server/configuration";
import { CommandFailure } from "../command-failure.ts";
import { print } from "../output.ts";
import { StopSignals } from "../stop-signals.ts";
import { readConfiguration, type SettingValues } from "./configuration.ts";
import { doorsOf } from "./doors.ts";
import { createLog } from "./log.ts";
import { PrivateHome, readPrivateConfiguration, requireProgramAtInput } from "./private.ts";

/** What was started ends within this, or is left for the next start to clean up. */
const SHUT_DOWN_MS = 10_000;

/** `agentfense serve` */
export async function serve(values: SettingValues & { readonly private?: boolean | undefined }): Promise<never> {
  // Whoever reads our lines may leave; what we serve is not theirs.
  for (const output of [process.stdout, process.stderr]) output.on("error", () => {});
  const inTime = values.private ? await servePrivately(values) : await serveAll(values);
  // Everything of ours is closed, but a timer that a library keeps for a client's deadline would hold the process.
  if (inTime) return process.exit(0);
  process.stderr.write("agentfense: not everything ended in time; the next start cleans up\n");
  return process.exit(1);
}

async function serveAll(values: SettingValues): Promise<boolean> {
  const { config } = await readConfiguration(values, process.env);
  using stop = StopSignals.ofServer();
  return await serveUntilStopped(config, stop.signal);
}

async function servePrivately(values: SettingValues): Promise<boolean> {
  const loaded = await readPrivateConfiguration(values, process.env);
  requireProgramAtInput();
  using stop = StopSignals.ofServer();
  stop.alsoAtEndOf(process.stdin);
  await using home = await PrivateHome.create(process.env).catch((error: unknown) => {
    throw failure("the server has no place", error);
  });
  return await serveUntilStopped(home.configuration(loaded), stop.signal, true);
}

/** Gives whether everything ended in time. */
async function serveUntilStopped(config: ServerConfig, stop: AbortSignal, isPrivate = false): Promise<boolean> {
  const log = createLog({ ...config.logging, write: (line) => process.stderr.write(line) });
  const doors = await doorsOf(config, log);
  const server = await openServer(config, { log, doors, isPrivate }).catch((error: unknown) => {
    throw failure("the server cannot start", error);
  });
  await print(addressLine(server)).catch(() => {}); // nobody reads it
  const failed = await servesUntil(stop, server);
  log({
    level: "info",
    message: "shutting down",
    ...(failed === undefined ? { signal: String(stop.reason) } : {}),
  });
  const inTime = await shutsDown(server);
  if (failed !== undefined) throw failure("the server cannot run", failed);
  return inTime;
}

function addressLine({ grpcAddress, httpAddress, doorAddresses }: RunningServer): string {
  const rest = httpAddress === undefined ? "no REST" : `REST on ${httpAddress}`;
  const e2b = doorAddresses.map((address) => `, E2B on ${address}`).join("");
  return `agentfense: gRPC on ${grpcAddress}, ${rest}${e2b}\n`;
}

/** Returns what the server failed with on its way to being ready, or nothing when somebody asked it to end. */
async function servesUntil(stop: AbortSignal, server: RunningServer): Promise<unknown> {
  const stopped = stop.aborted ? Promise.resolve() : once(stop, "abort").then(() => undefined);
  const neverReady = server.ready.then(
    () => stopped,
    (error: unknown) => error ?? new Error("unknown reason"),
  );
  return await Promise.race([stopped, neverReady, server.lost]);
}

async function shutsDown(server: RunningServer): Promise<boolean> {
  const { promise: tooLate, resolve } = Promise.withResolvers<false>();
  const timer = setTimeout(() => resolve(false), SHUT_DOWN_MS);
  try {
    return await Promise.race([server.shutDown().then(() => true), tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

function failure(what: string, error: unknown): CommandFailure {
  if (!(error instanceof Error)) return new CommandFailure(`${what}: ${String(error)}`);
  const hint = "hint" in error && typeof error.hint === "string" ? error.hint : undefined;
  return new CommandFailure(`${what}: ${error.message}`, { hint });
}
