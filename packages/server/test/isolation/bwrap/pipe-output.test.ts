import { once } from "node:events";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { processes, syscalls } from "@agentfense/fuse";
import { expect, test } from "vitest";
import { PipeOutput } from "../../../src/isolation/bwrap/pipe-output.ts";

class Command {
  readonly left: Socket[] = [];
  readonly output: PipeOutput;
  readonly #writeEnd: number;

  constructor() {
    const { readEnd, writeEnd } = processes.pipe() as processes.Pipe;
    this.#writeEnd = writeEnd;
    this.output = new PipeOutput(readEnd, (pipe) => this.left.push(pipe));
  }

  print(words: string): void {
    syscalls.write(this.#writeEnd, Buffer.from(words), words.length);
  }

  close(): void {
    syscalls.close(this.#writeEnd);
  }
}

test("what a short command printed is there in the moment it ends", async () => {
  const command = new Command();
  const { output } = command;
  output.read(0); // somebody wants it
  command.print("all of it\n");
  expect(output.waiting).toBe(10);
  command.close();
  output.commandEnded();
  expect(String(output.read())).toBe("all of it\n");
  await once(output.resume(), "close");
  expect(command.left).toEqual([]);
});

test("what a longer command prints comes while it runs", async () => {
  const command = new Command();
  const { output } = command;
  const [first] = await Promise.all([once(output, "data"), command.print("one ")]);
  expect(String(first)).toBe("one ");
  const rest = text(output);
  command.print("two");
  command.close();
  output.commandEnded();
  expect(await rest).toBe("two");
});

test("LIVE-04 what others print after a short command ended is not its output", async () => {
  const command = new Command();
  const { output } = command;
  const rest = text(output);
  command.print("before");
  output.commandEnded();
  command.print("after");
  expect(await rest).toBe("before");
  expect(command.left).toHaveLength(1);
  const [pipe] = command.left;
  const later = text(pipe!);
  command.close();
  expect(await later).toBe("after");
});

test("a command that nobody listens to any more leaves no pipe open", async () => {
  const command = new Command();
  const { output } = command;
  output.read(0);
  await once(output.destroy(), "close");
  output.commandEnded();
  expect(command.left).toEqual([]);
  command.print("nobody reads");
  command.close();
});
