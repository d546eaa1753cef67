// For whoever starts a server: doors whose inside is loaded with their first visitor. Imports nothing that is heavy.

import { AIO_PREFIX, aioKeyIn } from "./aio/address.ts";
import type { AioDoorOptions } from "./aio/options.ts";
import type { Door } from "./door.ts";
import { SandboxAccess } from "./e2b/access.ts";
import { e2bEntrance, e2bPlaces } from "./e2b/address.ts";
import type { E2bDoorOptions } from "./e2b/door.ts";
import { onDemand } from "./on-demand.ts";

export type { AioDoorOptions } from "./aio/options.ts";
export type { Door, DoorCall, DoorCaller } from "./door.ts";
export { e2bFormOf } from "./e2b/address.ts";
export type { E2bTemplates } from "./e2b/templates.ts";
export { type Inside, onDemand } from "./on-demand.ts";

/** What an AIO door has from elsewhere, and what ends with the door. */
export interface AioParts extends Pick<AioDoorOptions, "mcp" | "browser">, AsyncDisposable {}

export function aioDoorOnDemand(
  options: Pick<AioDoorOptions, "longestMs"> & {
    readonly parts?: (() => Promise<AioParts>) | undefined;
    /** Told what callers are not: failures inside. */
    readonly onError: (error: unknown) => void;
  },
): Door {
  const { parts, ...rest } = options;
  const load = async () => {
    const { aioDoor } = await import("./aio/door.ts");
    const made = await parts?.();
    const door = aioDoor({ mcp: made?.mcp, browser: made?.browser, ...rest });
    return { door, [Symbol.asyncDispose]: async () => await made?.[Symbol.asyncDispose]() };
  };
  return onDemand({ prefix: AIO_PREFIX, keyIn: aioKeyIn, sockets: false }, load, options.onError);
}

export function e2bDoorsOnDemand(
  options: Pick<E2bDoorOptions, "templates" | "address" | "publicPorts"> & {
    readonly onError: (error: unknown) => void;
  },
): readonly Door[] {
  const access = new SandboxAccess();
  let loading: Promise<readonly Door[]> | undefined;
  const load = (): Promise<readonly Door[]> => {
    loading ??= import("./e2b/door.ts").then(({ e2bDoors }) => e2bDoors({ ...options, access }));
    return loading;
  };
  return e2bPlaces(options.address).map((place, at) => {
    const inside = async () => ({ door: (await load())[at]!, [Symbol.asyncDispose]: async () => {} });
    return onDemand({ ...place, ...e2bEntrance(access), sockets: false }, inside, options.onError);
  });
}
