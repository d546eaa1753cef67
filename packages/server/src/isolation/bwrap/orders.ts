import { Errno, processes, syscalls } from "@agentfense/fuse";
import { exhausted, memoryFile } from "./descriptors.ts";

/** What an order comes to: `full` is to be tried again, nobody reads what is `gone`. */
export type Sending = "sent" | "full" | "gone";

/**
 * Sends an order to the launcher or to a keeper (see perl/messages.pl). The descriptors stay the caller's, who may close them
 * at once. The fields are in a file in memory: a message has room for a few kilobytes only, and arguments may be megabytes.
 */
export function sendOrder(
  socket: number,
  letter: string,
  fields: readonly (string | number)[],
  descriptors: readonly number[],
): Sending {
  const payload = memoryFile("order", Buffer.from(fields.map((field) => `${field}\0`).join(""), "utf8"));
  const code = processes.sendDescriptors(socket, letter, [payload, ...descriptors]);
  syscalls.close(payload);
  if (code >= 0) return "sent";
  if (code === -Errno.EAGAIN || code === -Errno.ETOOMANYREFS) return "full";
  if (code === -Errno.EPIPE || code === -Errno.ECONNRESET || code === -Errno.ENOTCONN) return "gone";
  throw exhausted("sendmsg", code);
}
