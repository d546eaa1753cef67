import { fileURLToPath } from "node:url";
import { type As, identityOf } from "./identity.ts";
import type { Answer, OperationName, Operations } from "./operations.ts";
import { Peer } from "./peer.ts";

/** An operation with its arguments: `["openat", "/path", O.RDONLY]`. */
export type Call = { [Name in OperationName]: readonly [Name, ...Parameters<Operations[Name]>] }[OperationName];

/**
 * A process that plays the agent: it makes raw system calls where the test tells it to, as the identity it was
 * started with, and never shares a process with the engine that serves the mount.
 */
export class Probe implements AsyncDisposable {
  readonly #peer: Peer;

  private constructor(peer: Peer) {
    this.#peer = peer;
  }

  static async start(as: As): Promise<Probe> {
    const script = fileURLToPath(new URL("./probe-process.ts", import.meta.url));
    const probe = new Probe(new Peer(script, { identity: identityOf(as) }));
    await probe.call("umask", 0o022);
    return probe;
  }

  get pid(): number {
    return this.#peer.pid;
  }

  /** How the process ended: the name of a signal, or "exit N". */
  get ended(): Promise<string> {
    return this.#peer.ended;
  }

  async call<Name extends OperationName>(name: Name, ...values: Parameters<Operations[Name]>): Promise<Answer> {
    const [answer] = (await this.#peer.ask([[name, ...values]])) as [Answer];
    return answer;
  }

  /** Many operations in one message, in order. */
  async batch(calls: readonly Call[]): Promise<Answer[]> {
    return (await this.#peer.ask(calls)) as Answer[];
  }

  /** Only the error names ("OK" for success), in the order of the calls. */
  async errnos(calls: readonly Call[]): Promise<string[]> {
    return (await this.batch(calls)).map((answer) => answer.errno);
  }

  async errnoOf<Name extends OperationName>(name: Name, ...values: Parameters<Operations[Name]>): Promise<string> {
    return (await this.call(name, ...values)).errno;
  }

  /** The content of a file as text, or the name of the error. */
  async text(path: string): Promise<string> {
    const answer = await this.call("readFile", path);
    return answer.data === undefined ? answer.errno : Buffer.from(answer.data).toString();
  }

  /** The sorted names of a directory without "." and "..", or the name of the error as the only element. */
  async names(path: string): Promise<string[]> {
    const answer = await this.call("list", path);
    if (answer.entries === undefined) return [answer.errno];
    return answer.entries
      .map((entry) => entry.name)
      .filter((name) => name !== "." && name !== "..")
      .sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#peer.kill();
  }
}
