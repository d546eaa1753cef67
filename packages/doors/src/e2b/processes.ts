import { type ProcessEnd, type ProcessEvent, type Sandbox, SandboxError, type SandboxProcess } from "@agentfense/sdk";
import { signalIfItLives } from "../processes.ts";
import * as shape from "../shape.ts";
import type { Method, RpcCall } from "./connect.ts";
import { E2bFailure } from "./failure.ts";
import { absolutePath, checkUser, HOME } from "./paths.ts";

// process.Process: commands and terminals.

/** What is 0 is left out in JSON of protobuf: a terminal without a size, such as that of a program without one, has the usual. */
const sizeShape = shape
  .object({ cols: shape.int().min(0).default(0), rows: shape.int().min(0).default(0) })
  .default({ cols: 0, rows: 0 });
const ptyShape = shape.object({ size: sizeShape }).optional();
const sizeOf = ({ size: { cols, rows } }: NonNullable<shape.Value<typeof ptyShape>>) => {
  return { columns: cols || 80, rows: rows || 24 };
};

const startShape = shape.object({
  process: shape.object({
    cmd: shape.string().min(1),
    args: shape.list(shape.string()).default([]),
    envs: shape.record(shape.string()).default({}),
    cwd: shape.string().optional(),
  }),
  pty: ptyShape,
  tag: shape.string().optional(),
  // Old clients say nothing and mean to write.
  stdin: shape.boolean().default(true),
});

const selectorShape = shape.object({
  process: shape.object({ pid: shape.int().optional(), tag: shape.string().optional() }),
});

const inputShape = shape.object({
  input: shape.object({ stdin: shape.string().optional(), pty: shape.string().optional() }),
});

const signalShape = shape.object({ signal: shape.oneOf(["SIGNAL_SIGKILL", "SIGNAL_SIGTERM"]) });
const updateShape = shape.object({ pty: ptyShape });

export type Config = shape.Value<typeof startShape>["process"];

const MOST_REMEMBERED = 1000;

/** What the contract does not keep of processes that were started here, for one sandbox and caller; of the newest of them. */
export class Started {
  readonly #known = new Map<number, { readonly config: Config; wasSignalled: boolean }>();

  add(number: number, config: Config): void {
    this.#known.set(number, { config, wasSignalled: false });
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST_REMEMBERED && oldest !== undefined) this.#known.delete(oldest);
  }

  configOf(number: number): Config | undefined {
    return this.#known.get(number)?.config;
  }

  /** It was sent a signal from here: only then an exit code above 128 speaks of one. */
  signal(number: number): void {
    const known = this.#known.get(number);
    if (known !== undefined) known.wasSignalled = true;
  }

  wasSignalled(number: number): boolean {
    return this.#known.get(number)?.wasSignalled === true;
  }
}

export function processMethods(sandbox: Sandbox, started: Started): Readonly<Record<string, Method>> {
  const find = async (message: object, signal: AbortSignal): Promise<SandboxProcess> => {
    const { pid, tag = "" } = shape.parsed(selectorShape, message, refusalOf).process;
    return await sandbox.process(pid ?? tag, { signal });
  };

  /** Does something with a process that runs. One that has ended, meanwhile too, is not found: clients count on the word. */
  async function living<T>(
    message: object,
    signal: AbortSignal,
    act: (process: SandboxProcess) => Promise<T>,
  ): Promise<T> {
    const process = await find(message, signal);
    if (process.info.state === "running") {
      try {
        return await act(process);
      } catch (error) {
        if (!(error instanceof SandboxError) || error.code !== "PROCESS_UNSUITABLE") throw error;
        if ((await find(message, signal)).info.state === "running") throw error;
      }
    }
    throw new E2bFailure("not_found", `process with pid ${process.number} not found`);
  }

  async function* start(message: object, { headers, signal, timeoutMs }: RpcCall): AsyncGenerator<object> {
    const { process: config, pty, tag, stdin } = shape.parsed(startShape, message, refusalOf);
    const user = userIn(headers);
    const process = await sandbox.spawn([config.cmd, ...config.args], {
      workdir: absolutePath(config.cwd ?? ""),
      env: { USER: user, LOGNAME: user, ...config.envs },
      stdin,
      ...(tag === undefined ? {} : { tag }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(pty === undefined ? {} : { terminal: sizeOf(pty) }),
      signal,
    });
    started.add(process.number, config);
    yield* told(process, await process.attach({ signal }));
  }

  async function* told(process: SandboxProcess, events: AsyncIterable<ProcessEvent>): AsyncGenerator<object> {
    yield { event: { start: { pid: process.number } } };
    for await (const event of events) {
      if (event.kind === "exit") {
        if (event.end.timedOut) throw new E2bFailure("deadline_exceeded", "the time of the command is up");
        yield { event: { end: endOf(event.end, started.wasSignalled(process.number)) } };
        return;
      }
      const name = event.kind === "terminal" ? "pty" : event.kind;
      yield { event: { data: { [name]: Buffer.from(event.data).toString("base64") } } };
    }
  }

  async function write(process: SandboxProcess, message: object, signal: AbortSignal): Promise<void> {
    const { input } = shape.parsed(inputShape, message, refusalOf);
    await process.write(Buffer.from(input.stdin ?? input.pty ?? "", "base64"), { signal });
  }

  return {
    Start: { kind: "server", run: start },
    Connect: {
      kind: "server",
      async *run(message, { signal }) {
        const process = await find(message, signal);
        yield* told(process, await process.attach({ skipKept: true, signal }));
      },
    },
    List: {
      kind: "unary",
      async run(_, { signal }) {
        const all = await sandbox.processes({ signal });
        const living = all.filter(({ info }) => info.kind === "started" && info.state === "running");
        return { processes: living.map(({ info }) => listed(info, started.configOf(info.number))) };
      },
    },
    SendInput: {
      kind: "unary",
      async run(message, { signal }) {
        await living(message, signal, (process) => write(process, message, signal));
        return {};
      },
    },
    StreamInput: {
      kind: "client",
      async run(messages, { signal }) {
        let process: SandboxProcess | undefined;
        for await (const message of messages) {
          const { start: first, data } = message as { readonly start?: object; readonly data?: object };
          if (first !== undefined) process = await living(first, signal, (found) => Promise.resolve(found));
          else if (data !== undefined) {
            if (process === undefined) throw new E2bFailure("invalid_argument", "the stream begins with a start");
            await write(process, data, signal);
          }
        }
        return {};
      },
    },
    CloseStdin: {
      kind: "unary",
      async run(message, { signal }) {
        await living(message, signal, (process) => process.end({ signal }));
        return {};
      },
    },
    SendSignal: {
      kind: "unary",
      async run(message, { signal }) {
        const process = await find(message, signal);
        const name = shape.parsed(signalShape, message, refusalOf).signal.slice("SIGNAL_".length);
        started.signal(process.number);
        if (await signalIfItLives(process, name)) return {};
        throw new E2bFailure("not_found", `process with pid ${process.number} not found`);
      },
    },
    Update: {
      kind: "unary",
      async run(message, { signal }) {
        const { pty } = shape.parsed(updateShape, message, refusalOf);
        if (pty !== undefined) await living(message, signal, (process) => process.resize(sizeOf(pty), { signal }));
        return {};
      },
    },
  };
}

export function refusalOf(problem: string): Error {
  return new E2bFailure("invalid_argument", problem);
}

/** The user that a call names; the default one, unless it does. */
export function userIn(headers: Headers): string {
  const packed = /^Basic +(\S+)$/i.exec(headers.get("authorization") ?? "")?.[1] ?? "";
  const name = Buffer.from(packed, "base64").toString().split(":", 1)[0] ?? "";
  checkUser(name);
  return name || "user";
}

function listed(info: SandboxProcess["info"], config: Config | undefined): object {
  const { cmd, args, envs, cwd } = config ?? { cmd: info.command, args: [], envs: {}, cwd: HOME };
  return {
    pid: info.number,
    ...(info.tag === "" ? {} : { tag: info.tag }),
    config: { cmd, args, envs, ...(cwd === undefined ? {} : { cwd }) },
  };
}

/** Signals in the words of Go's runtime. */
const SIGNALS: Readonly<Record<string, string>> = { SIGKILL: "killed", SIGTERM: "terminated" };

function endOf({ exitCode, signal }: ProcessEnd, wasSignalled: boolean): object {
  if (signal !== undefined && wasSignalled) {
    const status = `signal: ${SIGNALS[signal] ?? signal.slice(3).toLowerCase()}`;
    return { exitCode: -1, exited: false, status, error: status };
  }
  const status = `exit status ${exitCode}`;
  return { exitCode, exited: true, status, ...(exitCode === 0 ? {} : { error: status }) };
}
