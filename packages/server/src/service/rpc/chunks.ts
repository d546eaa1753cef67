/** The most content in one message of a stream. */
const CHUNK_BYTES = 256 * 1024;

/** The same bytes in pieces that fit a message. Nothing is read ahead: whoever takes the pieces sets the pace. */
export async function* chunked(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const data of content) yield* pieces(data);
}

export function* pieces(data: Uint8Array): Generator<Uint8Array> {
  for (let offset = 0; offset < data.length; offset += CHUNK_BYTES) {
    yield data.subarray(offset, offset + CHUNK_BYTES);
  }
}
