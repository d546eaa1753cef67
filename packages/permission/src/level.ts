/** What a path may be used for, weakest first: absent, listed, readable, changeable. */
export type Level = "none" | "view" | "read" | "write";

/** The same four levels as numbers, so that "at least read" is a comparison. */
export type LevelValue = 0 | 1 | 2 | 3;

export const LEVEL = { none: 0, view: 1, read: 2, write: 3 } as const satisfies Record<Level, LevelValue>;

const NAMES = ["none", "view", "read", "write"] as const;

/** The word for a numeric level, as rules spell it. */
export function levelName(value: LevelValue): Level {
  return NAMES[value];
}

export function isLevel(value: unknown): value is Level {
  return typeof value === "string" && (NAMES as readonly string[]).includes(value);
}
