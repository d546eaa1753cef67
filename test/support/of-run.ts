import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";

// What the test files of a run share, although each may be in a process of its own: it starts in vitest's own process, which
// lives as long as the run, when the first of them asks.

interface Shared {
  /** What the test files need to know of it. */
  readonly place: string;
  stop(): Promise<void>;
}

type Answer = { readonly place: string } | { readonly failure: string };

/** Gives the socket at which the run says where it is, and what ends it. */
export async function offer(start: () => Promise<Shared>): Promise<{ socketPath: string; end: () => Promise<void> }> {
  let shared: Promise<Shared> | undefined;
  const answer = async (): Promise<Answer> => {
    try {
      shared ??= start();
      return { place: (await shared).place };
    } catch (error) {
      return { failure: String(error) };
    }
  };
  const directory = await mkdtemp(join(tmpdir(), "agentfense-run-"));
  const socketPath = join(directory, "socket");
  const server = createServer(async (connection) => {
    // A test file that ends before its answer comes is no failure of the run.
    connection.on("error", () => {});
    connection.end(JSON.stringify(await answer()));
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return {
    socketPath,
    async end() {
      server.close();
      await rm(directory, { recursive: true });
      await (await shared?.catch(() => undefined))?.stop();
    },
  };
}

/** Asks the run, from a test file. */
export async function placeAt(socketPath: string): Promise<string> {
  const answer = JSON.parse(await text(connect(socketPath))) as Answer;
  if ("failure" in answer) throw new Error(answer.failure);
  return answer.place;
}
