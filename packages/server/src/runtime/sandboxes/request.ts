import { checkWish as checkShape, type Wish } from "../../isolation/exec/request.ts";
import { invalid } from "../errors.ts";
import { toRuntimeError } from "./errors.ts";

const LARGEST = { labels: 64, labelName: 128, labelValue: 1024 };

export function checkLabels(labels: Readonly<Record<string, string>>): void {
  const entries = Object.entries(labels);
  if (entries.length > LARGEST.labels) throw invalid(`a sandbox has at most ${LARGEST.labels} labels`);
  for (const [name, value] of entries) {
    if (name === "") throw invalid("a label needs a name");
    if (Buffer.byteLength(name) > LARGEST.labelName) {
      throw invalid(`the name of a label has at most ${LARGEST.labelName} bytes`);
    }
    if (Buffer.byteLength(value) > LARGEST.labelValue) {
      throw invalid(`the value of the label ${JSON.stringify(name)} has more than ${LARGEST.labelValue} bytes`);
    }
    if (name.includes("\0") || value.includes("\0")) {
      throw invalid(`the label ${JSON.stringify(name)} contains a NUL character`);
    }
  }
}

/** Refuses what cannot be right before the sandbox is looked at, let alone resumed. */
export function checkWish(wish: Wish): void {
  try {
    checkShape(wish);
  } catch (error) {
    throw toRuntimeError(error);
  }
}

/** Absent, 0, less and NaN mean the default; the isolation layer bounds the rest. */
export function timeoutOf(timeoutMs: number | undefined): { readonly timeoutMs?: number } {
  return timeoutMs !== undefined && timeoutMs > 0 ? { timeoutMs } : {};
}
