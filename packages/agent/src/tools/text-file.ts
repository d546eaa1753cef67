import { ToolFailure } from "./tool.ts";

/** The text of a file; throws for what is not UTF-8, which would not survive being written back. */
export function decodeText(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ToolFailure(`${path} is no UTF-8 text`);
  }
}
