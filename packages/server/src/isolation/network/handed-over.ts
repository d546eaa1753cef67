import { fstatSync } from "node:fs";
import { syscalls } from "@agentfense/fuse";
import type { GateListeners } from "./gate.ts";

/**
 * What closes those of the listeners that nobody has taken over and closed. It knows them by what they are and not by their numbers alone, which may be
 * somebody else's by then.
 */
export function closerOf({ dnsUdp, dnsTcp, tcp = [] }: Partial<GateListeners> = {}): () => void {
  const descriptors = [dnsUdp, dnsTcp, ...tcp.map(({ descriptor }) => descriptor)].filter((one) => one !== undefined);
  const known = descriptors.map((descriptor) => ({ descriptor, identity: identityOf(descriptor) }));
  return () => {
    for (const { descriptor, identity } of known) {
      if (identity !== undefined && identityOf(descriptor) === identity) syscalls.close(descriptor);
    }
  };
}

function identityOf(descriptor: number): string | undefined {
  try {
    const { dev, ino } = fstatSync(descriptor, { bigint: true });
    return `${dev} ${ino}`;
  } catch {
    return undefined; // it is closed
  }
}
