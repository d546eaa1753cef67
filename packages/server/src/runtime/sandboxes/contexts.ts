import type { CodeEvent, CodeOutcome, CodeRequest } from "../../isolation/code/api.ts";
import { invalid } from "../runtime-error.ts";
import type { Sandboxes } from "./api.ts";
import type { Parts } from "./parts.ts";
import { translating } from "./refusals.ts";
import { checkTerms, timeoutOf } from "./request.ts";

type Calls = Pick<
  Sandboxes,
  "createContext" | "listContexts" | "restartContext" | "interruptContext" | "deleteContext" | "runCode"
>;

/** The code contexts of sandboxes that run: each ends with the life of its sandbox, and only who may see the sandbox reaches it. */
export function contextCalls({ registry, pausing, commands, auditTrail }: Parts): Calls {
  return {
    async createContext(caller, id, request, signal) {
      const registered = await registry.findReturned(caller, id);
      checkTerms(request);
      using entered = await pausing.enter(caller, registered, { command: true });
      const context = await translating(entered.sandbox.contexts.create(request, { signal }));
      const { id: contextId, language } = context;
      auditTrail.tell("code_context_created", registered, caller, { data: { context_id: contextId, language } });
      return context;
    },

    listContexts: async (caller, id) =>
      (await registry.findReturned(caller, id)).requireRunning().sandbox.contexts.list(),

    async restartContext(caller, id, contextId, signal) {
      const registered = await registry.findReturned(caller, id);
      using entered = await pausing.enter(caller, registered, { command: true });
      const context = await translating(entered.sandbox.contexts.restart(contextId, { signal }));
      auditTrail.tell("code_context_restarted", registered, caller, { data: { context_id: contextId } });
      return context;
    },

    async interruptContext(caller, id, contextId) {
      const registered = await registry.findReturned(caller, id);
      using entered = await pausing.enter(caller, registered);
      await translating((async () => entered.sandbox.contexts.interrupt(contextId))());
    },

    async deleteContext(caller, id, contextId) {
      const registered = await registry.findReturned(caller, id);
      using entered = await pausing.enter(caller, registered);
      await translating(entered.sandbox.contexts.remove(contextId));
      auditTrail.tell("code_context_deleted", registered, caller, { data: { context_id: contextId } });
    },

    async *runCode(caller, id, call) {
      const registered = await registry.findReturned(caller, id);
      const request = checked(call);
      using entered = await pausing.enter(caller, registered, { command: true });
      const events = entered.sandbox.contexts.run(request, call);
      const language = call.language ?? "";
      const command = { registered, caller, command: call.code, code: language };
      yield* commands.superviseStream<CodeEvent, CodeOutcome>(command, events);
    },
  };
}

function checked({ code, context, language, env, timeoutMs }: CodeRequest): CodeRequest {
  if (code.includes("\0")) throw invalid("code contains a NUL character");
  checkTerms({ env });
  return { code, context, language, ...(env === undefined ? {} : { env }), ...timeoutOf(timeoutMs) };
}
