import { Transform } from "node:stream";
import type { ResponseMask } from "./secrets.ts";
import type { StreamReplacer } from "./stream-replacer.ts";

const SHORT = 126;
const LONG = 127;
const MASKED = 0x80;

/**
 * What a host sends through a WebSocket, masked frame by frame (RFC 6455, 5.2). A frame goes on when it is whole, whatever it ends
 * with, since the next one may be long in coming.
 */
export function maskedFrames(mask: ResponseMask): Transform {
  let head = Buffer.alloc(0);
  let payload: { readonly replacer: StreamReplacer; left: number } | undefined;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      let rest = chunk;
      while (rest.length > 0) {
        if (payload === undefined) {
          const needed = headLength(head) - head.length;
          head = Buffer.concat([head, rest.subarray(0, needed)]);
          rest = rest.subarray(needed);
          if (head.length < headLength(head)) continue;
          this.push(head);
          payload = { replacer: mask.stream(), left: payloadLength(head) };
          head = Buffer.alloc(0);
        } else {
          const part = rest.subarray(0, payload.left);
          rest = rest.subarray(part.length);
          payload.left -= part.length;
          this.push(payload.replacer.push(part));
        }
        if (payload.left > 0) continue;
        this.push(payload.replacer.flush());
        payload = undefined;
      }
      done();
    },
  });
}

/** As far as what is there of it tells. */
function headLength(head: Buffer): number {
  if (head.length < 2) return 2;
  const length = head[1]! & ~MASKED;
  return 2 + (length === SHORT ? 2 : length === LONG ? 8 : 0) + (head[1]! & MASKED ? 4 : 0);
}

function payloadLength(head: Buffer): number {
  const length = head[1]! & ~MASKED;
  if (length === SHORT) return head.readUInt16BE(2);
  return length === LONG ? Number(head.readBigUInt64BE(2)) : length;
}
