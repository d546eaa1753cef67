import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { type ConnectError, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Caller } from "../../runtime/caller.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import type { ServiceLog } from "../log.ts";
import { callerKey } from "../rpc/caller-context.ts";
import { toConnectError } from "../rpc/errors.ts";
import type { Authenticator } from "./authentication.ts";
import type { OwnerRates } from "./rate-limit.ts";

/** The secret of a call, to see later whether it is still valid. */
export const secretKey = createContextKey<string | undefined>(undefined, { description: "secret" });

export interface GateOptions {
  readonly authenticator: Authenticator;
  readonly rates: OwnerRates;
  readonly isDraining: () => boolean;
  readonly log: ServiceLog;
  readonly onRefusal: (method: DescMethod, error: ConnectError) => void;
}

const HEALTH = "grpc.health.v1.Health";
const REFLECTION = new Set(["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"]);

/**
 * Decides about every call, over whatever door it came, before its first message is read: is the server still serving,
 * who calls, may a key of this role call this, is it the owner's turn.
 */
export function createGate(options: GateOptions): (context: HandlerContext) => Promise<void> {
  return async (context) => {
    const { method } = context;
    if (method.parent.typeName === HEALTH) return;
    try {
      if (options.isDraining()) throw new RuntimeError("SHUTTING_DOWN", "the server is shutting down");
      const { caller, secret } = await options.authenticator.identify(context.requestHeader);
      checkRole(caller, method);
      options.rates.take(limitedAs(caller));
      context.values.set(callerKey, caller);
      context.values.set(secretKey, secret);
    } catch (error) {
      const refusal = toConnectError(error, { log: options.log, method: methodName(method), signal: context.signal });
      options.onRefusal(method, refusal);
      throw refusal;
    }
  };
}

/** "sandbox.v1.SandboxService.Exec" */
export function methodName(method: DescMethod): string {
  return `${method.parent.typeName}.${method.name}`;
}

/** Whose limits a call counts against: the owner's; an administrator's key has its own. */
export function limitedAs(caller: Caller): string {
  return caller.ownerId === undefined ? `key:${caller.keyId ?? ""}` : `owner:${caller.ownerId}`;
}

function checkRole(caller: Caller, method: DescMethod): void {
  if (caller.role !== "read-only" || REFLECTION.has(method.parent.typeName)) return;
  if (method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS) return;
  throw new RuntimeError("ROLE_FORBIDS", `a read-only key may not call ${method.name}`, {
    details: { role: caller.role, method: method.name },
  });
}
