import { constants } from "node:os";
import type { BoxedWorkspace, SandboxProcess, SpawnRequest } from "../../isolation/sandbox/api.ts";
import type { Caller } from "../caller.ts";
import { invalid } from "../runtime-error.ts";
import { unless } from "../waiting.ts";
import type { Sandboxes, SandboxProcessCalls } from "./api.ts";
import { clippedCommand } from "./audit-trail.ts";
import type { Parts } from "./parts.ts";
import { toRuntimeError, translating } from "./refusals.ts";
import type { RegisteredSandbox } from "./registered-sandbox.ts";
import { checkTerms, timeoutOf } from "./request.ts";

const TAG = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/;

/** The store is told of so many numbers together. */
const NUMBERS_AT_ONCE = 100;

/**
 * The processes of a sandbox, for a caller who may see it. Processes keep no sandbox awake, but whoever reads, waits for or
 * writes to one does.
 */
export function processCalls({ registry, commands, pausing, auditTrail }: Parts): Pick<Sandboxes, "processes"> {
  return {
    processes: async (caller, id) => ofResident(caller, await registry.findReturned(caller, id)),
  };

  function ofResident(caller: Caller, registered: RegisteredSandbox): SandboxProcessCalls {
    const within = async <T>(which: number | string, work: (process: SandboxProcess) => Promise<T>): Promise<T> => {
      using entered = await pausing.enter(caller, registered);
      return await translating((async () => work(find(entered.sandbox, which)))());
    };
    return {
      ownerId: registered.record.ownerId,

      async spawn({ signal, ...call }) {
        const request = checked(call);
        using entered = await pausing.enter(caller, registered, { command: true });
        const process = await translating(entered.sandbox.processes.spawn(request, { signal }));
        const { number, tag } = process;
        // Before anybody is told a number: that one is not given again after a restart of the server, either.
        if (number > registered.record.lastProcessNumber) {
          await registered.update({ lastProcessNumber: number + NUMBERS_AT_ONCE });
        }
        const data = { command: clippedCommand(call.command), process: number, tag };
        auditTrail.tell("process_started", registered, caller, { data });
        const command = { registered, caller, command: call.command, process: number };
        commands.supervise(command, process.ended).catch(() => {}); // told by then
        return process;
      },

      list: () => registered.requireRunning().sandbox.processes.all(),

      wait: (which, { signal } = {}) =>
        within(which, async (process) => {
          await unless(process.ended, { signal });
          return process;
        }),

      async *attach(which, options) {
        using entered = await pausing.enter(caller, registered);
        try {
          yield* find(entered.sandbox, which).attach(options);
        } catch (error) {
          throw toRuntimeError(error);
        }
      },

      write: (which, data, options) => within(which, (process) => process.write(data, options)),
      closeInput: (which) => within(which, (process) => process.closeInput()),
      resize: (which, size) => within(which, (process) => process.resize(size)),

      async signal(which, signal) {
        const number = signalNumber(signal);
        await within(which, (process) => process.signal(number));
      },
    };
  }
}

function find({ processes }: BoxedWorkspace, which: number | string): SandboxProcess {
  if (typeof which === "string") checkTag(which);
  return processes.find(which);
}

function checked({ tag, timeoutMs, ...request }: SpawnRequest): SpawnRequest {
  checkTerms(request);
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
