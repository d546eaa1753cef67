import { setTimeout as sleep } from "node:timers/promises";

// A subshell that becomes a program has the program's name a moment before the kernel closes what its shell had put away, and no name
// at all while it ends. Seen in that moment it looks like a program that took hold of a channel of its shell.

/** A process with a descriptor of a channel that the kernel may be about to close. */
export interface Suspect {
  /** Not another one's later. */
  readonly id: string;
  readonly isAsleep: boolean;
  readonly cpuTicks: number;
}

/** Who has a channel of a shell, besides it and its subshells. */
export interface Holders {
  readonly strangers: number;
  readonly suspects: readonly Suspect[];
}

/** A suspect that computes this long has left the kernel. */
const MOST_TICKS = 2;
/** One that sleeps whenever it is looked at waits for something else than its turn. */
const MOST_LOOKS_ASLEEP = 10;
/** A suspect may hand what it has to the next one before its time is up. */
const MOST_SUSPECTS = 16;
/** For those that get no turn on a machine with much to do. */
const PATIENCE_MS = 30_000;
const LONGEST_PAUSE_MS = 20;

/** Looks until nobody is suspected any more: who has not let go by then is a stranger. */
export async function countStrangers(look: () => Promise<Holders>): Promise<number> {
  const known = new Map<string, { readonly cpuTicks: number; looksAsleep: number }>();
  const deadline = performance.now() + PATIENCE_MS;
  for (let pauseMs = 0; ; pauseMs = Math.min(pauseMs + 1, LONGEST_PAUSE_MS)) {
    const { strangers, suspects } = await look();
    if (strangers > 0 || suspects.length === 0) return strangers;
    const convicted = suspects.filter(({ id, isAsleep, cpuTicks }) => {
      const first = known.get(id) ?? { cpuTicks, looksAsleep: 0 };
      known.set(id, first);
      if (isAsleep) first.looksAsleep += 1;
      return first.looksAsleep > MOST_LOOKS_ASLEEP || cpuTicks - first.cpuTicks > MOST_TICKS;
    });
    if (convicted.length > 0) return convicted.length;
    if (known.size > MOST_SUSPECTS || performance.now() > deadline) return suspects.length;
    await sleep(pauseMs);
  }
}
