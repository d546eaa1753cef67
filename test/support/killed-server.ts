import { mkdtempSync, rmSync, watch } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { aWhile, eventually } from "./eventually.ts";
import { GrpcClient } from "./grpc-client.ts";
import { TestServer } from "./server.ts";

/** A server that is killed and started again in the same place. */
export class KilledServer implements AsyncDisposable {
  readonly directory: string;
  #server: TestServer;
  #grpc: GrpcClient;

  private constructor(directory: string, server: TestServer) {
    this.directory = directory;
    this.#server = server;
    this.#grpc = new GrpcClient(server.grpc);
  }

  static async start(): Promise<KilledServer> {
    const directory = mkdtempSync(join(tmpdir(), "agentfense-killed-"));
    return new KilledServer(directory, await TestServer.start({ directory }));
  }

  get server(): TestServer {
    return this.#server;
  }

  get grpc(): GrpcClient {
    return this.#grpc;
  }

  /**
   * Kills it while the call is at work in the directory, soon after something appeared there; whether the call was answered
   * all the same. Resolves when the next one has its sandboxes running again.
   */
  async killDuring(directory: string, call: () => Promise<unknown>): Promise<{ readonly isAcknowledged: boolean }> {
    const begun = somethingHappens(directory);
    const answer = call().then(
      () => true,
      () => false,
    );
    await Promise.race([begun, answer]);
    await aWhile(Math.random() * 30);
    await this.#server.stop("SIGKILL");
    const isAcknowledged = await answer;
    this.#grpc[Symbol.dispose]();
    this.#server = await TestServer.start({ directory: this.directory });
    this.#grpc = new GrpcClient(this.#server.grpc);
    const status = async (): Promise<number> => (await fetch(`${this.#server.http}/readyz`)).status;
    await eventually(async () => expect(await status()).toBe(200));
    return { isAcknowledged };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#grpc[Symbol.dispose]();
    await this.#server.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Something appears in or goes from a directory. */
async function somethingHappens(directory: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  using stack = new DisposableStack();
  stack.adopt(
    watch(directory, () => resolve()),
    (watcher) => watcher.close(),
  );
  await promise;
}
