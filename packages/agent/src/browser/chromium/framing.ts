/**
 * The messages of a debugging pipe: texts with a NUL behind each. What comes is a browser's, and pages are in it: a
 * message without an end is given up before it fills the memory.
 */
export async function* messagesOf(
  chunks: AsyncIterable<Uint8Array>,
  maxMessageBytes: number,
): AsyncGenerator<Buffer, void, undefined> {
  let pieces: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(0); end !== -1; end = chunk.indexOf(0, from)) {
      yield Buffer.concat([...pieces, chunk.subarray(from, end)]);
      pieces = [];
      size = 0;
      from = end + 1;
    }
    if (from === chunk.length) continue;
    pieces.push(chunk.slice(from));
    size += chunk.length - from;
    if (size > maxMessageBytes) throw new RangeError(`a message of more than ${maxMessageBytes} bytes`);
  }
}
