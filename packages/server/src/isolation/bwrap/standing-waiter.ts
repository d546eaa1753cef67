import type { Socket } from "node:net";
import type { Command } from "./command.ts";
import { readFrom } from "./descriptors.ts";
import type { HostProcess } from "./host-processes.ts";
import { type Sending, sendOrder } from "./orders.ts";

/** A box that is asked for nothing for so long keeps bwrap and the keeper alone. */
const PATIENCE_MS = 30_000;

/**
 * A waiter that is there for the next command when one is over and left nothing: making one and ending it take longer than most
 * commands. A box has one; what runs beside its command has waiters of its own.
 */
export class StandingWaiter {
  readonly #fd: number;
  /** Nothing comes by it but the end of the waiter. */
  readonly #socket: Socket;
  readonly #onTired: () => void;
  #command: Command | undefined;
  /** What is known of it when it is free. */
  #number: number | undefined;
  #process: HostProcess | undefined;
  #patience: NodeJS.Timeout | undefined;

  /** @param onTired is called when nothing was asked of it for long, and when it is gone */
  constructor(fd: number, command: Command, onTired: () => void) {
    this.#fd = fd;
    this.#command = command;
    this.#onTired = onTired;
    this.#socket = readFrom(fd).resume();
    this.#socket.once("close", onTired);
  }

  get isFree(): boolean {
    return this.#command === undefined && !this.#isGone;
  }

  /** Its number inside the box. */
  get number(): number | undefined {
    return this.#number;
  }

  /** As the host sees it, where that was looked up. */
  get process(): HostProcess | undefined {
    return this.#process;
  }

  attends(command: Command): boolean {
    return this.#command === command;
  }

  take(command: Command, fields: readonly (string | number)[], descriptors: readonly number[]): Sending {
    clearTimeout(this.#patience);
    this.#command = command;
    const sending = this.#isGone ? "gone" : sendOrder(this.#fd, "r", fields, descriptors);
    if (sending === "sent" && this.#number !== undefined) command.givenTo(this.#number);
    return sending;
  }

  /** Its command is over, and nothing of it is left. */
  becomeFree(): void {
    this.#number = this.#command?.waiterPid ?? this.#number;
    this.#process = this.#command?.knownWaiter ?? this.#process;
    this.#command = undefined;
    this.#patience = setTimeout(this.#onTired, PATIENCE_MS).unref();
  }

  /** It ends when nothing of its command is left. */
  dismiss(): void {
    clearTimeout(this.#patience);
    this.#socket.off("close", this.#onTired).destroy();
  }

  get #isGone(): boolean {
    return this.#socket.destroyed || this.#socket.readableEnded;
  }
}
