import type { Door } from "./door.ts";

/** What stands behind a door, and what ends with it. */
export interface Inside extends AsyncDisposable {
  readonly door: Door;
}

/**
 * A door whose inside is loaded with its first visitor: a server at which nobody calls there starts and stays small. `onFailure`
 * is told when a connection cannot be handed over for that reason.
 */
export function onDemand(
  outside: Pick<Door, "prefix" | "address" | "keyIn" | "portKeyIn" | "refusal"> & { readonly sockets: boolean },
  load: () => Promise<Inside>,
  onFailure: (error: unknown) => void,
): Door {
  let loading: Promise<Inside> | undefined;
  let isClosed = false;
  const inside = async (): Promise<Door> => {
    if (isClosed) throw new Error("the server ends");
    loading ??= load();
    return (await loading).door;
  };
  const { sockets, ...known } = outside;
  return {
    ...known,
    answer: async (request, call) => await (await inside()).answer(request, call),
    ...(sockets && {
      upgrade: (request, socket, head, call) => {
        inside().then(
          (door) => door.upgrade?.(request, socket, head, call),
          (error: unknown) => {
            onFailure(error);
            socket.destroy();
          },
        );
      },
    }),
    close: async () => {
      isClosed = true;
      const loaded = await loading?.catch(() => undefined);
      await loaded?.door.close?.();
      await loaded?.[Symbol.asyncDispose]();
    },
  };
}
