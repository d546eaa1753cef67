import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { withoutHanging } from "./eventually.ts";

const repository = join(import.meta.dirname, "../..");
export const CLI = join(repository, "packages/agentfense/src/cli.ts");

/** Sections and keys of the configuration file. */
export type Settings = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export interface ServerOptions {
  /** Where it keeps everything; a new one unless given. One that is given is not removed at the end. */
  readonly directory?: string;
  /** Over the test's defaults, section by section. */
  readonly settings?: Settings;
  /** The most descriptors that the server's process may have. */
  readonly descriptors?: number;
  /** The program `agentfense`, if not that of the source. */
  readonly cli?: string;
  /** For the server's process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A real server in a process of its own, as `agentfense serve` starts it, on free ports of loopback. */
export class TestServer implements AsyncDisposable {
  /** "127.0.0.1:45678" */
  readonly grpc: string;
  /** "http://127.0.0.1:45679" */
  readonly http: string;
  readonly directory: string;
  readonly configFile: string;
  readonly #process: ChildProcess;
  readonly #output: string[];
  readonly #temporary: boolean;

  private constructor(parts: {
    grpc: string;
    http: string;
    directory: string;
    configFile: string;
    process: ChildProcess;
    output: string[];
    temporary: boolean;
  }) {
    this.grpc = parts.grpc;
    this.http = parts.http;
    this.directory = parts.directory;
    this.configFile = parts.configFile;
    this.#process = parts.process;
    this.#output = parts.output;
    this.#temporary = parts.temporary;
  }

  static async start(options: ServerOptions = {}): Promise<TestServer> {
    const directory = options.directory ?? mkdtempSync(join(tmpdir(), "agentfense-server-"));
    const configFile = writeConfiguration(directory, options.settings ?? {});
    const command = [process.execPath, options.cli ?? CLI, "serve", "--config", configFile];
    const { descriptors } = options;
    const limit = descriptors === undefined ? [] : ["prlimit", `--nofile=${descriptors}:${descriptors}`];
    const [program, ...args] = [...limit, ...command];
    const child = spawn(program!, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...passedOn("PATH", "HOME", "NODE_COMPILE_CACHE"), ...options.env },
    });
    const output: string[] = [];
    const addresses = await listening(child, output).catch((error: unknown) => {
      if (options.directory === undefined) rmSync(directory, { recursive: true, force: true });
      throw error;
    });
    return new TestServer({
      ...addresses,
      directory,
      configFile,
      process: child,
      output,
      temporary: options.directory === undefined,
    });
  }

  get pid(): number {
    return this.#process.pid!;
  }

  get running(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** Everything it printed so far. */
  get output(): string {
    return this.#output.join("");
  }

  /** Its log, entry by entry. */
  get log(): Record<string, unknown>[] {
    return this.output
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** Ends it and waits; gives the exit code, or the name of the signal. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | NodeJS.Signals> {
    if (this.running) {
      const ended = once(this.#process, "exit");
      this.#process.kill(signal);
      await ended;
    }
    return this.#process.exitCode ?? this.#process.signalCode!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    if (this.#temporary) rmSync(this.directory, { recursive: true, force: true });
  }
}

function passedOn(...names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );
}

function writeConfiguration(directory: string, settings: Settings): string {
  mkdirSync(directory, { recursive: true });
  const defaults: Settings = {
    server: { grpc_addr: "127.0.0.1:0", http_addr: "127.0.0.1:0" },
    storage: {
      codebase_path: join(directory, "codebases"),
      mount_path: join(directory, "mounts"),
      db_path: join(directory, "metadata.db"),
    },
    sandbox: { max_per_user: 1000 },
    logging: { format: "json" },
  };
  const sections = new Set([...Object.keys(defaults), ...Object.keys(settings)]);
  const merged = Object.fromEntries([...sections].map((name) => [name, { ...defaults[name], ...settings[name] }]));
  const file = join(directory, "agentfense.yaml");
  writeFileSync(file, JSON.stringify(merged, undefined, 2)); // JSON is YAML
  return file;
}

async function listening(child: ChildProcess, output: string[]): Promise<{ grpc: string; http: string }> {
  const found = Promise.withResolvers<{ grpc: string; http: string }>();
  const look = (chunk: Buffer): void => {
    output.push(chunk.toString("utf8"));
    const text = output.join("");
    const [, grpc, http] = text.match(/gRPC on ([^,]+), REST on ([^,\s]+)[^\n]*\n/) ?? [];
    if (grpc !== undefined && http !== undefined) found.resolve({ grpc, http: `http://${http}` });
  };
  child.stdout!.on("data", look);
  child.stderr!.on("data", look);
  // Closed: everything that it said is there.
  child.once("close", (code, signal) => found.reject(new Error(`the server ended (${code ?? signal})`)));
  return await withoutHanging(() => found.promise).catch((error: Error) => {
    child.kill("SIGKILL");
    throw new Error(`${error.message}:\n${output.join("")}`, { cause: error });
  });
}
