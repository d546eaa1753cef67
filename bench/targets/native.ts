import type { Ground, Target } from "./target.ts";

/** The directory itself: what every ratio is a ratio to. It has no mount cache, so cold and warm are the same. */
export async function native(ground: Ground): Promise<Target> {
  return {
    name: "native",
    root: await ground.copyOfTree("native"),
    client: { pinned: ground.pinned },
    writable: true,
    start: async () => {},
    remount: async () => {},
    stop: async () => {},
    connection: () => undefined,
  };
}
