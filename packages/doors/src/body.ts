import type { Budget } from "./budget.ts";

/** A body that is not taken. */
export class BodyRefusal extends Error {
  override readonly name = "BodyRefusal";
  readonly status: 413 | 503;

  constructor(message: string, status: 413 | 503) {
    super(message);
    this.status = status;
  }
}

/** The same request, with a body that is all here and not too large; nor are all together that are here. */
export async function bodyOf(
  request: Request,
  { limit, budget }: { readonly limit: number; readonly budget: Budget },
): Promise<{ readonly request: Request } & Disposable> {
  if (request.body === null) return { request, [Symbol.dispose]: () => {} };
  const pieces: Uint8Array[] = [];
  let size = 0;
  const release = (): void => budget.add(-size);
  try {
    for await (const piece of request.body) {
      size += piece.byteLength;
      budget.add(piece.byteLength);
      if (size > limit) throw new BodyRefusal(`the body has more than ${limit} bytes`, 413);
      if (budget.isSpent) throw new BodyRefusal("too much is being sent at once", 503);
      pieces.push(piece);
    }
  } catch (error) {
    release();
    throw error;
  }
  const { method, headers, signal } = request;
  const whole = new Request(request.url, { method, headers, signal, body: Buffer.concat(pieces) });
  return { request: whole, [Symbol.dispose]: release };
}

/** Undefined for what is no JSON. */
export async function jsonOf(request: Request): Promise<unknown> {
  try {
    return JSON.parse(await request.text());
  } catch {
    return undefined;
  }
}
