import { createHash, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { ALICE, arrange } from "./fixture.ts";
import { collected, file, pieces } from "./opening.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
/** Around the sizes at which buffers on the way to the disk grow, are full, or are sent. */
const SIZES = [0, 1, 16 * KIB - 1, 16 * KIB, 16 * KIB + 1, 64 * KIB + 1, MIB - 1, MIB, MIB + 1, 3 * MIB + 17, 5];
const PIECES = [7, 16 * KIB, 300 * KIB, 2 * MIB];

test.each(PIECES)("files of every size arrive as they were sent, in pieces of %d bytes", async (pieceBytes) => {
  const { codebases, id } = await arrange();
  // Millions of tiny pieces would prove no more than thousands.
  const sizes = SIZES.filter((size) => size / pieceBytes < 10_000);
  const contents = sizes.map((size) => randomBytes(size));
  const sent = contents.flatMap((content, index) => [
    { entry: file(`file-${index}`) },
    ...Array.from({ length: Math.ceil(content.length / pieceBytes) }, (_, at) => ({
      data: content.subarray(at * pieceBytes, (at + 1) * pieceBytes),
    })),
  ]);
  await codebases.batch(ALICE, id, pieces(...sent));
  const digest = (content: Uint8Array) => createHash("sha256").update(content).digest("hex");
  for (const [index, content] of contents.entries()) {
    const { content: stream } = await codebases.download(ALICE, id, `file-${index}`, {});
    const arrived = await collected(stream);
    expect([arrived.length, digest(arrived)]).toEqual([content.length, digest(content)]);
  }
});
