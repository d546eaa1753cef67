import { Buffer } from "node:buffer";
import { refusal } from "./refusal.ts";

const MOST_BYTES = 4 * 1024 * 1024;

type Body =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "refused"; readonly response: Response };

/** The body of a request that should be JSON. */
export async function readJson(request: Request): Promise<Body> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of request.body ?? []) {
    length += piece.length;
    if (length > MOST_BYTES) return refused(413, `the body is larger than ${MOST_BYTES} bytes`);
    pieces.push(piece);
  }
  try {
    return { kind: "json", value: JSON.parse(Buffer.concat(pieces).toString("utf8")) as unknown };
  } catch {
    return refused(400, "the body is no JSON");
  }
}

function refused(status: number, message: string): Body {
  return { kind: "refused", response: refusal(status, message) };
}
