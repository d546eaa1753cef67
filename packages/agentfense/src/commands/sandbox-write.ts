import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { FileInfoSchema } from "@agentfense/protocol/codebase";
import type { WriteFileChunkSchema } from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { UsageError } from "../command.ts";
import { print } from "../output.ts";
import { remoteCommand } from "../remote/command.ts";
import { jsonOf, printJson, showSize } from "../remote/show.ts";
import { printable } from "../terminal.ts";

const HELP = `Usage: agentfense sandbox write [OPTIONS] SANDBOX PATH [FILE]

Writes FILE, or what comes on stdin, to a file of the sandbox, as far as its rules allow. The sandbox must be running.

  --append          after what is there
  --mode MODE       permission bits of a new file, in octal (default 644)
`;

export const sandboxWrite = remoteCommand({
  name: "sandbox write",
  help: HELP,
  options: { append: { type: "boolean" }, mode: { type: "string" } },
  takes: ["SANDBOX", "PATH"],
  more: { name: "FILE", atMost: 1 },
  async run({ server, values, given: [sandboxId, path], more: [file], json }) {
    const metadata = { sandboxId, path, append: values.append === true, mode: parseMode(values.mode) };
    const info = await server.sandboxes.writeFile(chunks(metadata, await contentOf(file)));
    if (json) await printJson(jsonOf(FileInfoSchema, info));
    else await print(`${printable(info.path)}  ${showSize(info.size)}\n`);
    return 0;
  },
});

type Chunk = MessageInitShape<typeof WriteFileChunkSchema>;
type Metadata = Extract<NonNullable<Chunk["content"]>, { case: "metadata" }>["value"];

async function* chunks(metadata: Metadata, content: AsyncIterable<Uint8Array>): AsyncGenerator<Chunk> {
  yield { content: { case: "metadata", value: { ...metadata, announcesEnd: true } } };
  for await (const data of content) yield { content: { case: "data", value: data } };
  yield { content: { case: "end", value: true } };
}

/** Opened before anything is sent, so that a name that is wrong costs nothing. */
async function contentOf(file: string | undefined): Promise<AsyncIterable<Uint8Array>> {
  if (file === undefined || file === "-") return process.stdin;
  const handle = await open(file, "r").catch((error: Error) => {
    throw new UsageError(`cannot read FILE: ${printable(error.message)}`);
  });
  return createReadStream("", { fd: handle });
}

function parseMode(text: string | undefined): number {
  if (text === undefined) return 0;
  if (!/^0?[0-7]{3}$/.test(text)) throw new UsageError(`--mode takes three octal digits, not ${JSON.stringify(text)}`);
  return Number.parseInt(text, 8);
}
