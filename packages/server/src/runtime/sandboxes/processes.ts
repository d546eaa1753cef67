import { constants } from "node:os";
import type { Cancellable } from "../../isolation/exec/api.ts";
import type { ProcessEvent, Sandbox, SandboxProcess, SpawnRequest } from "../../isolation/sandbox/api.ts";
import type { Caller } from "../caller.ts";
import type { SandboxProcessCalls, SpawnCall } from "./api.ts";
import type { Commands } from "./commands.ts";
import { invalid, toRuntimeError, translating } from "./errors.ts";
import type { Pausing } from "./pausing.ts";
import { checkWish, timeoutOf } from "./request.ts";
import type { Resident } from "./resident.ts";
import { clippedCommand, type Witness } from "./witness.ts";

const TAG = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/;

/** The store is told of so many numbers together. */
const NUMBERS_AT_ONCE = 100;

interface Parts {
  readonly commands: Commands;
  readonly pausing: Pausing;
  readonly witness: Witness;
}

/**
 * The processes of one sandbox, for a caller who may see it. Processes keep no sandbox awake, but whoever reads, waits for or
 * writes to one does.
 */
export class ResidentProcesses implements SandboxProcessCalls {
  readonly #caller: Caller;
  readonly #resident: Resident;
  readonly #parts: Parts;

  constructor(caller: Caller, resident: Resident, parts: Parts) {
    this.#caller = caller;
    this.#resident = resident;
    this.#parts = parts;
  }

  get ownerId(): string {
    return this.#resident.record.ownerId;
  }

  async spawn({ signal, ...call }: SpawnCall): Promise<SandboxProcess> {
    const request = checked(call);
    const { commands, pausing, witness } = this.#parts;
    const [caller, resident] = [this.#caller, this.#resident];
    using entered = await pausing.enter(caller, resident, { command: true });
    const process = await translating(entered.sandbox.processes.spawn(request, { signal }));
    const { number, tag } = process;
    await this.#remember(number);
    const data = { command: clippedCommand(call.command), process: number, tag };
    witness.tell("process_started", resident, caller, { data });
    const commission = { resident, caller, command: call.command, process: number };
    commands.supervise(commission, process.ended).catch(() => {}); // told by then
    return process;
  }

  list(): readonly SandboxProcess[] {
    return this.#resident.requireRunning().sandbox.processes.all();
  }

  async wait(which: number | string, { signal }: Cancellable = {}): Promise<SandboxProcess> {
    return await this.#with(which, async (process) => {
      const left = Promise.withResolvers<never>();
      const leave = (): void => left.reject(signal?.reason);
      signal?.addEventListener("abort", leave);
      await Promise.race([process.ended, left.promise]).finally(() => signal?.removeEventListener("abort", leave));
      return process;
    });
  }

  async *attach(which: number | string, options?: Cancellable): AsyncGenerator<ProcessEvent> {
    using entered = await this.#parts.pausing.enter(this.#caller, this.#resident);
    try {
      yield* find(entered.sandbox, which).attach(options);
    } catch (error) {
      throw toRuntimeError(error);
    }
  }

  async write(which: number | string, data: Uint8Array, options?: Cancellable): Promise<void> {
    await this.#with(which, (process) => process.write(data, options));
  }

  async closeInput(which: number | string): Promise<void> {
    await this.#with(which, (process) => process.closeInput());
  }

  async resize(which: number | string, size: { readonly columns: number; readonly rows: number }): Promise<void> {
    await this.#with(which, (process) => process.resize(size));
  }

  async signal(which: number | string, signal: string): Promise<void> {
    const number = signalNumber(signal);
    await this.#with(which, (process) => process.signal(number));
  }

  /** Before anybody is told a number: that one is not given again after a restart of the server, either. */
  async #remember(number: number): Promise<void> {
    const { record } = this.#resident;
    if (number <= record.lastProcessNumber) return;
    await this.#resident.update({ lastProcessNumber: number + NUMBERS_AT_ONCE });
  }

  async #with<T>(which: number | string, work: (process: SandboxProcess) => Promise<T>): Promise<T> {
    using entered = await this.#parts.pausing.enter(this.#caller, this.#resident);
    return await translating((async () => work(find(entered.sandbox, which)))());
  }
}

function find({ processes }: Sandbox, which: number | string): SandboxProcess {
  if (typeof which === "string") checkTag(which);
  return processes.find(which);
}

function checked({ tag, timeoutMs, ...request }: SpawnRequest): SpawnRequest {
  checkWish(request);
  if (tag) checkTag(tag);
  return { ...request, ...(tag ? { tag } : {}), ...timeoutOf(timeoutMs) };
}

function checkTag(tag: string): void {
  if (TAG.test(tag)) return;
  throw invalid("a tag is a letter and then at most 63 letters, digits, dots, underscores and hyphens");
}

/** "SIGTERM", "term" or "15". */
function signalNumber(signal: string): number {
  const { signals } = constants;
  const name = signal.toUpperCase();
  const number = /^[0-9]+$/.test(name)
    ? Number(name)
    : (signals[name as keyof typeof signals] ?? signals[`SIG${name}` as keyof typeof signals]);
  if (number === undefined || number < 1 || number > 64) {
    throw invalid(`${JSON.stringify(signal.slice(0, 32))} is not a signal`, 'use a name, as in "SIGTERM", or a number');
  }
  return number;
}
