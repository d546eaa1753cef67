import type { Socket } from "node:net";
import { syscalls } from "@agentfense/fuse";
import { memoryFile } from "./descriptors.ts";
import type { Job } from "./job.ts";
import { ANSWER, CALL, type Order } from "./spare-order.ts";

/** What makes the job of a spare: it gets the descriptor of the order's file, and how its start shows. */
export type MakeSpareJob = (file: number, startOf: (job: Job) => Promise<boolean>) => Job;

/** A box that is set up and waits for its command. It is used once: what runs in it has it for itself, like any other. */
export class Spare {
  readonly job: Job;
  #file: number;

  constructor(makeJob: MakeSpareJob) {
    this.#file = memoryFile("order", Buffer.alloc(0));
    const close = (): void => {
      syscalls.close(this.#file);
      this.#file = -1;
    };
    try {
      this.job = makeJob(this.#file, ({ channel }) => answerOn(channel));
    } catch (error) {
      close();
      throw error;
    }
    this.job.started.then(close, close);
  }

  /**
   * It need not be ready yet: it finds the order when it is. What came of it `job.started` tells. False when it is over
   * already or there is no memory for the order.
   */
  give(order: Order, file: Uint8Array): boolean {
    const { stdin, channel } = this.job;
    if (this.#file < 0 || syscalls.write(this.#file, file, file.length) !== file.length) return false;
    if (order.stdin) stdin?.write(CALL);
    else stdin?.end(CALL);
    if (!order.channel)
      this.job.started.then(
        () => channel?.destroy(),
        () => {},
      );
    return true;
  }
}

/**
 * Takes the answer and not a byte more from the stream: what follows is the shell's. Only an end of file proves that there
 * was none; a stream that closes otherwise proves nothing.
 */
function answerOn(channel: Socket | undefined): Promise<boolean> {
  return new Promise((resolve) => {
    const onReadable = (): void => {
      const answer = channel?.read(ANSWER.length) as Buffer | null;
      if (answer === null) return;
      channel?.off("readable", onReadable);
      resolve(answer.toString("latin1") === ANSWER);
    };
    channel?.on("readable", onReadable);
    channel?.once("end", () => resolve(false));
  });
}
