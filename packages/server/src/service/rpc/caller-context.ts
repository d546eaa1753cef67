import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Caller } from "../../runtime/caller.ts";
import { RuntimeError } from "../../runtime/errors.ts";

/** Who asks, put there by whoever authenticated the request. Absent: nobody did, and no handler runs. */
export const callerKey = createContextKey<Caller | undefined>(undefined, { description: "caller" });

export function callerOf(context: Pick<HandlerContext, "values">): Caller {
  const caller = context.values.get(callerKey);
  if (caller === undefined) {
    throw new RuntimeError("UNAUTHENTICATED", "an API key is required", {
      hint: "send it as the header Authorization: Bearer <key>",
    });
  }
  return caller;
}
