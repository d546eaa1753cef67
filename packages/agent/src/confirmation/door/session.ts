import type { ClientMessage } from "../protocol.ts";

/** What a connection became by its hello. */
export interface Session {
  /** Gives what is wrong with the message, if anything is. */
  receive(message: ClientMessage): string | undefined;
  /** The connection is gone. */
  end(): void;
}
