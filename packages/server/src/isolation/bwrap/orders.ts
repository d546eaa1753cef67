import { Errno, processes, syscalls } from "@agentfense/fuse";
import { DescriptorSet, exhausted, memoryFile, readFrom } from "./descriptors.ts";

const LONGEST_ANSWER = 64;

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

/** Asks for a descriptor and tells what was said; -1 when none came. What it is has to be looked at: it may be anything. */
export async function askForDescriptor(
  socket: number,
  letter: string,
): Promise<{ readonly fd: number; readonly said: string }> {
  using lent = new DescriptorSet();
  const [ours, theirs] = lent.pair(syscalls.socketpair());
  const status = lent.pipe();
  const answer = readFrom(lent.release(status.readEnd)).setEncoding("latin1");
  const sending = sendOrder(socket, letter, [], [status.writeEnd, theirs]);
  lent.close(status.writeEnd);
  lent.close(theirs);
  let said = "";
  if (sending !== "sent") answer.destroy();
  else {
    for await (const text of answer) {
      said += String(text);
      if (said.length > LONGEST_ANSWER) break;
    }
  }
  return { fd: said === "d\n" ? syscalls.receiveDescriptor(ours) : -1, said: `${sending} ${said}` };
}
