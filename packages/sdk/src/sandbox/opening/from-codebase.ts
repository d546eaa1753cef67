import type { OpeningKit, OpenOptions } from "./kit.ts";
import { type LayGround, open, ownCodebase } from "./open.ts";

export interface FromCodebaseOptions extends OpenOptions {
  /** Pins it to a version; default: the newest, and it follows. */
  readonly codebaseVersion?: number | undefined;
}

export interface CreateOptions extends OpenOptions {
  /** Default: an empty one, which goes with the sandbox. */
  readonly codebaseId?: string | undefined;
}

/** A sandbox on a codebase that is there, and stays. */
export async function openCodebase<S>(
  kit: OpeningKit<S>,
  codebaseId: string,
  options: FromCodebaseOptions,
): Promise<S> {
  return await open(kit, options, codebaseGround({ codebaseId, codebaseVersion: options.codebaseVersion }));
}

/** A sandbox on a codebase that is there, or on an empty one of its own. */
export async function openNew<S>(kit: OpeningKit<S>, options: CreateOptions): Promise<S> {
  const { codebaseId } = options;
  return await open(kit, options, codebaseId === undefined ? emptyGround(options) : codebaseGround({ codebaseId }));
}

export function codebaseGround(codebase: {
  readonly codebaseId: string;
  readonly codebaseVersion?: number | undefined;
}): LayGround {
  return async () => ({ ...codebase, isOwn: false });
}

export function emptyGround(options: OpenOptions): LayGround {
  return async (connection, undo) => {
    const codebaseId = await ownCodebase(connection, undo, { ...options, name: options.name ?? "sandbox" });
    return { codebaseId, isOwn: true };
  };
}
