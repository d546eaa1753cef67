import { randomBytes } from "node:crypto";

const SEPARATOR = 0x1e;
/** No frame of ours is longer; what only looks like the beginning of one is output. */
const LONGEST = 65_536;

export type Piece =
  | { readonly kind: "data"; readonly data: Buffer }
  | { readonly kind: "frame"; readonly text: string };

/** What tells the words of one command's script from anybody else's; see scripts.ts. */
export interface Secrets {
  /** In every frame. */
  readonly mark: string;
  /** In the last one as well. */
  readonly seal: string;
}

export function newSecrets(): Secrets {
  const secret = () => randomBytes(16).toString("hex");
  return { mark: secret(), seal: secret() };
}

/** The first line of a script's stdin. */
export function firstLine({ mark, seal }: Secrets): string {
  return `${mark} ${seal}\n`;
}

/** Finds the frames (see scripts.ts) in one stream; everything else is output and passes at once. */
export class FrameScanner {
  readonly #opening: Buffer;
  #held: Buffer = Buffer.alloc(0);

  constructor(mark: string) {
    this.#opening = Buffer.from(`${String.fromCharCode(SEPARATOR)}${mark} `, "latin1");
  }

  scan(chunk: Buffer): Piece[] {
    let rest = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = Buffer.alloc(0);
    const pieces: Piece[] = [];
    const data = (bytes: Buffer) => {
      if (bytes.length > 0) pieces.push({ kind: "data", data: bytes });
    };
    for (;;) {
      const begin = rest.indexOf(this.#opening);
      if (begin < 0) {
        const kept = this.#possibleOpening(rest);
        data(rest.subarray(0, rest.length - kept));
        this.#held = Buffer.from(rest.subarray(rest.length - kept));
        return pieces;
      }
      data(rest.subarray(0, begin));
      const text = begin + this.#opening.length;
      const end = rest.indexOf(SEPARATOR, text);
      if (end < 0 && rest.length - begin > LONGEST) {
        data(rest.subarray(begin, text));
        rest = rest.subarray(text);
      } else if (end < 0) {
        this.#held = Buffer.from(rest.subarray(begin));
        return pieces;
      } else {
        pieces.push({ kind: "frame", text: rest.toString("utf8", text, end) });
        rest = rest.subarray(end + 1);
      }
    }
  }

  /** What was held back in the hope of a frame, now that no more will come. */
  rest(): Buffer {
    const held = this.#held;
    this.#held = Buffer.alloc(0);
    return held;
  }

  /** How many bytes at the end could be the beginning of a frame. */
  #possibleOpening(bytes: Buffer): number {
    let at = bytes.indexOf(SEPARATOR, Math.max(0, bytes.length - this.#opening.length + 1));
    while (at >= 0) {
      const length = bytes.length - at;
      if (this.#opening.subarray(0, length).equals(bytes.subarray(at))) return length;
      at = bytes.indexOf(SEPARATOR, at + 1);
    }
    return 0;
  }
}
