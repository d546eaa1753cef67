import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Isolation, openIsolation } from "../../../src/isolation/isolation.ts";
import type { JobInput, JobName, JobOutput } from "../../../src/isolation/jobs/jobs.ts";
import type { Jobs, JobThread } from "../../../src/isolation/jobs/thread.ts";
import type { MockAnswer } from "../../../src/isolation/mock/process.ts";
import type { AskOptions } from "../../../src/isolation/threads/answering-thread.ts";
import { openAudit } from "../../../src/runtime/audit/open-audit.ts";
import type { Caller } from "../../../src/runtime/caller.ts";
import { openCodebases } from "../../../src/runtime/codebases/open-codebases.ts";
import type { CreateSandboxRequest, ExecAnswer, ExecCall } from "../../../src/runtime/sandboxes/api.ts";
import { deltaWork } from "../../../src/runtime/sandboxes/delta-work.ts";
import { type OpenSandboxes, openSandboxes } from "../../../src/runtime/sandboxes/open-sandboxes.ts";
import type { SandboxesOptions } from "../../../src/runtime/sandboxes/options.ts";
import { SealingKeys } from "../../../src/runtime/secrets/sealing.ts";
import { SecretVault } from "../../../src/runtime/secrets/vault.ts";
import { openSqliteStore } from "../../../src/runtime/store/sqlite/open-sqlite-store.ts";
import type { EventRecord, MetadataStore, RuntimeName, SandboxRecord } from "../../../src/runtime/store/store.ts";
import { jobsOfProcess } from "../../isolation/jobs/jobs-of-process.ts";

export const ALICE: Caller = { ownerId: "alice", role: "user", keyId: "key_a" };
export const BOB: Caller = { ownerId: "bob", role: "user", keyId: "key_b" };
export const ADMIN: Caller = { ownerId: undefined, role: "admin" };

export interface SandboxesFixtureOptions
  extends Partial<Pick<SandboxesOptions, "defaults" | "fallbackRuntime" | "clock" | "observe">> {
  readonly runtime?: RuntimeName;
  readonly runtimes?: SandboxesOptions["runtimes"];
  /** What a command of the mock does, by its line. */
  readonly answer?: (line: string) => MockAnswer | undefined;
  /** Stands between the manager and the isolation layer. */
  readonly wrap?: (isolation: Isolation) => Isolation;
}

const NO_ALERTS = {
  permissionDeniedPerMinute: 1e9,
  sandboxesCreatedPerHour: 1e9,
  sessionDurationMs: 1e12,
  resourceLimitExceededPerMinute: 1e9,
};

/** What a place may do with the thread: nothing after it was closed, and what it began before is over by then. */
class JobsOfPlace implements Jobs, AsyncDisposable {
  readonly #thread: JobThread;
  readonly #running = new Set<Promise<unknown>>();
  #closed = false;

  constructor(thread: JobThread) {
    this.#thread = thread;
  }

  async run<Name extends JobName>(name: Name, input: JobInput<Name>, options?: AskOptions): Promise<JobOutput<Name>> {
    if (this.#closed) throw new Error("the job threads are closed");
    const output = this.#thread.run(name, input, options);
    this.#running.add(output);
    return await output.finally(() => this.#running.delete(output));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#running);
  }
}

/** A sandbox manager with everything below it, in a directory of its own. */
export class SandboxesFixture implements AsyncDisposable {
  readonly directory: string;
  readonly log: string[] = [];
  sandboxes!: OpenSandboxes;
  store!: MetadataStore;
  codebases!: Awaited<ReturnType<typeof openCodebases>>;
  /** One of alice's, and one of bob's. */
  codebaseId = "";
  bobsCodebaseId = "";
  readonly #options: SandboxesFixtureOptions;
  #parts = new AsyncDisposableStack();
  #flush: () => Promise<void> = async () => {};

  static async open(options: SandboxesFixtureOptions = {}): Promise<SandboxesFixture> {
    const directory = await mkdtemp(join(tmpdir(), "agentfense-sandboxes-"));
    await chmod(directory, 0o711); // the user that boxes run as has to get to the mount points
    const place = new SandboxesFixture(options, directory);
    await place.#open();
    place.codebaseId = (await place.codebases.create(ALICE, { name: "project", ownerId: "alice" })).id;
    place.bobsCodebaseId = (await place.codebases.create(BOB, { name: "other", ownerId: "bob" })).id;
    return place;
  }

  private constructor(options: SandboxesFixtureOptions, directory: string) {
    this.#options = options;
    this.directory = directory;
  }

  get deltaDirectory(): string {
    return join(this.directory, "delta");
  }

  /** As after a restart of the server. */
  async reopen(options: { readonly crash?: boolean } = {}): Promise<void> {
    if (!options.crash) await this.sandboxes.close();
    await this.#parts.disposeAsync();
    await this.#open();
    await this.sandboxes.ready;
  }

  create(changes: Partial<CreateSandboxRequest> = {}): Promise<SandboxRecord> {
    return this.sandboxes.create(ALICE, this.request(changes));
  }

  request(changes: Partial<CreateSandboxRequest> = {}): CreateSandboxRequest {
    return sandboxRequest({ codebaseId: this.codebaseId, ...changes });
  }

  /** The id of a sandbox of alice's that runs. */
  async running(changes: Partial<CreateSandboxRequest> = {}): Promise<string> {
    const { id } = await this.create(changes);
    await this.sandboxes.start(ALICE, id);
    return id;
  }

  async run(
    id: string,
    command: string,
    changes: Partial<ExecCall> = {},
  ): Promise<Omit<ExecAnswer, "stdout" | "stderr"> & { readonly stdout: string; readonly stderr: string }> {
    const answer = await this.sandboxes.exec(ALICE, id, line(command, changes));
    return { ...answer, stdout: answer.stdout.toString(), stderr: answer.stderr.toString() };
  }

  /** Files by their paths, as one version. */
  async upload(files: Readonly<Record<string, string>>): Promise<void> {
    async function* pieces() {
      for (const [path, content] of Object.entries(files)) {
        const size = Buffer.byteLength(content);
        yield { entry: { kind: "file" as const, path, mode: 0o644, size, sha256: "" }, data: Buffer.from(content) };
      }
    }
    await this.codebases.batch(ALICE, this.codebaseId, pieces());
  }

  /** The codebase as its store has it: the content of files, "/" for directories, "-> target" for links. */
  async tree(): Promise<Record<string, string>> {
    const query = { path: "", recursive: true, version: 0, pageSize: 1000, pageToken: "" };
    const { items } = await this.codebases.listFiles(ALICE, this.codebaseId, query);
    const tree: Record<string, string> = {};
    for (const { path, kind, target } of items) {
      if (kind === "directory") tree[path] = "/";
      else if (kind === "symlink") tree[path] = `-> ${target}`;
      else {
        const { content } = await this.codebases.download(ALICE, this.codebaseId, path);
        tree[path] = Buffer.concat(await Array.fromAsync(content)).toString();
      }
    }
    return tree;
  }

  async events(...types: string[]): Promise<readonly EventRecord[]> {
    await this.#flush();
    return await this.store.listEvents({ limit: 1000, ...(types.length === 0 ? {} : { types }) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sandboxes.close();
    await this.#parts.disposeAsync();
    await rm(this.directory, { recursive: true, force: true });
  }

  async #open(): Promise<void> {
    const parts = new AsyncDisposableStack();
    this.#parts = parts;
    const { runtime = "mock", answer, wrap = (isolation) => isolation, ...rest } = this.#options;
    const log = (line: { readonly message: string; readonly error?: unknown }): void => {
      this.log.push(line.error === undefined ? line.message : `${line.message}: ${String(line.error)}`);
    };
    this.store = parts.use(await openSqliteStore({ path: join(this.directory, "metadata.db"), log }));
    const audit = parts.use(
      openAudit({ store: this.store, log: () => {}, retention: { maxAgeMs: 1e12, maxEvents: 1e9 }, alerts: NO_ALERTS }),
    );
    this.#flush = () => audit.flush();
    const jobs = parts.use(new JobsOfPlace(jobsOfProcess));
    const directory = join(this.directory, "codebases");
    this.codebases = parts.use(await openCodebases({ store: this.store, directory, jobs, log }));
    const isolation = parts.use(
      await openIsolation({
        stateDirectory: join(this.directory, "run"),
        runtimes: [runtime],
        log,
        ...(answer === undefined ? {} : { mock: { answer: ({ argv }) => answer(argv.at(-1)!) } }),
      }),
    );
    this.sandboxes = await openSandboxes({
      runtimes: [runtime],
      ...rest,
      store: this.store,
      codebases: this.codebases,
      isolation: wrap(isolation),
      deltas: deltaWork(jobs),
      secrets: new SecretVault({ store: this.store, audit, sealing: SealingKeys.ofProcess() }),
      audit,
      deltaDirectory: this.deltaDirectory,
      homeDirectory: join(this.directory, "homes"),
      log,
    });
  }
}

export function sandboxRequest(changes: Partial<CreateSandboxRequest> = {}): CreateSandboxRequest {
  return {
    codebaseId: "cb_0123456789abcdef",
    codebaseVersion: 0,
    rules: [{ pattern: "**/*", permission: "write" }],
    preset: "",
    labels: {},
    image: "",
    resources: {},
    network: "none",
    networkList: {},
    secrets: [],
    revocable: false,
    env: {},
    home: "",
    workspaceHome: "",
    pauseAtExpiry: false,
    ...changes,
  };
}

export function line(command: string, changes: Partial<ExecCall> = {}): ExecCall {
  return { command, env: {}, workdir: "", ...changes };
}

/** How a call was refused, to compare as a whole. */
export async function refusal(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  try {
    await work;
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return { code, message };
  }
  throw new Error("the call was not refused");
}
