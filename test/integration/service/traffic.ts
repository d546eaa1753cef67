import { expect } from "vitest";
import type { GrpcClient, Message } from "../../support/grpc-client.ts";

// What the clients of a busy server do, each checking every answer it gets.

/** Long enough for any call of a crowd on a slow machine: one that takes longer is stuck. */
const PATIENCE = { deadlineMs: 120_000 } as const;

/** A sandbox of the crowd, and the file that is its own in the codebase. */
export interface Place {
  readonly index: number;
  readonly codebaseId: string;
  readonly sandboxId: string;
  readonly file: string;
}

/** A command that prints its number, and one that leaves it in the sandbox's file as well. */
export async function execs(client: GrpcClient, place: Place, numbers: readonly string[]): Promise<void> {
  for (const [at, number] of numbers.entries()) {
    const writes = at % 2 === 1 || at === numbers.length - 1;
    const command = writes ? `echo ${number} | tee ${place.file}` : `echo ${number}`;
    const request = { sandbox_id: place.sandboxId, command };
    expect(await client.call("SandboxService", "Exec", request, PATIENCE)).toMatchObject({
      stdout: `${number}\n`,
      stderr: "",
      exit_code: 0,
      timed_out: false,
      sync_problems: [],
    });
  }
}

/** Output that comes in several pieces. */
export async function execStreams(client: GrpcClient, place: Place, numbers: readonly string[]): Promise<void> {
  for (const number of numbers) {
    const command = `for part in 1 2 3; do echo ${number}.$part; echo error ${number} >&2; done; exit 3`;
    const request = { sandbox_id: place.sandboxId, command };
    const messages = await client.collect("SandboxService", "ExecStream", request, PATIENCE);
    expect(textOf(messages, "OUTPUT_TYPE_STDOUT")).toBe([1, 2, 3].map((part) => `${number}.${part}\n`).join(""));
    expect(textOf(messages, "OUTPUT_TYPE_STDERR")).toBe(`error ${number}\n`.repeat(3));
    expect(messages.at(-1)).toMatchObject({ exit_code: 3, timed_out: false });
  }
}

/** A shell that remembers what it was told before. */
export async function session(client: GrpcClient, place: Place, numbers: readonly string[]): Promise<void> {
  const { id } = await client.call("SandboxService", "CreateSession", { sandbox_id: place.sandboxId }, PATIENCE);
  const seen: string[] = [];
  for (const number of numbers) {
    seen.push(number);
    const request = { session_id: id, command: `seen="$seen ${number}"; echo $seen` };
    const result = await client.call("SandboxService", "SessionExec", request, PATIENCE);
    expect(result).toMatchObject({ stdout: `${seen.join(" ")}\n`, exit_code: 0, session_closed: false });
  }
  await client.call("SandboxService", "DestroySession", { session_id: id }, PATIENCE);
}

/** Files one by one, each read back. */
export async function uploads(client: GrpcClient, place: Place, numbers: readonly string[]): Promise<void> {
  for (const number of numbers) {
    const path = `uploads/${place.index}/${Number.parseInt(number, 10) % 10}.txt`;
    const content = `${number} `.repeat(20_000);
    const uploaded = await client.upload(place.codebaseId, path, content);
    expect(uploaded).toMatchObject({ size: String(content.length) });
    expect((await client.download(place.codebaseId, path)).toString()).toBe(content);
  }
}

/** Many files at once. */
export async function batches(client: GrpcClient, place: Place, numbers: readonly string[]): Promise<void> {
  const paths = Array.from({ length: 50 }, (_, at) => `batch/${place.index}/${at % 7}/${at}.txt`);
  for (const number of numbers) {
    const items = paths.map((path) => ({ entry: { path }, data: Buffer.from(`${number} ${path}\n`) }));
    const messages = [{ begin: { codebase_id: place.codebaseId } }, { items }];
    const result = await client.send("CodebaseService", "BatchUpload", messages, PATIENCE);
    expect(result).toMatchObject({ files_changed: paths.length });
    const last = paths.at(-1)!;
    expect((await client.download(place.codebaseId, last)).toString()).toBe(`${number} ${last}\n`);
  }
}

/** Watches the commands of a sandbox from an event on until all that are expected have been seen; gives the last event. */
export async function watch(
  client: GrpcClient,
  place: Place,
  options: { readonly afterSequence: string; readonly commands: number },
): Promise<string> {
  const request = {
    sandbox_id: place.sandboxId,
    types: ["command_executed"],
    after_sequence: options.afterSequence,
  };
  const events = client.stream("EventService", "WatchEvents", request, { deadlineMs: 3_600_000 });
  const sequences: bigint[] = [BigInt(options.afterSequence)];
  for await (const event of events) {
    const { sequence, sandbox_id } = event as { sequence: string; sandbox_id: string };
    expect(sandbox_id).toBe(place.sandboxId);
    expect(BigInt(sequence)).toBeGreaterThan(sequences.at(-1)!);
    sequences.push(BigInt(sequence));
    if (sequences.length > options.commands) break;
  }
  events.cancel(); // leaving the loop does not
  return String(sequences.at(-1));
}

/** How many commands the audit log has. */
export async function countCommands(client: GrpcClient): Promise<number> {
  let count = 0;
  for (let pageToken = ""; ; ) {
    const request = { types: ["command_executed"], page_size: 1000, page_token: pageToken };
    const page = await client.call("EventService", "ListEvents", request, PATIENCE);
    count += (page.events as Message[]).length;
    pageToken = page.next_page_token as string;
    if (pageToken === "") return count;
  }
}

function textOf(messages: readonly Message[], type: string): string {
  const parts = messages.filter((message) => message.type === type).map(({ data }) => data as Buffer);
  return Buffer.concat(parts).toString();
}
