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
  const { descriptors, said } = await askForDescriptors(socket, letter, [], 1);
  return { fd: descriptors[0] ?? -1, said };
}

/** The same for so many at once: all of them, or none. */
export async function askForDescriptors(
  socket: number,
  letter: string,
  fields: readonly (string | number)[],
  count: number,
): Promise<{ readonly descriptors: readonly number[]; readonly said: string }> {
  using lent = new DescriptorSet();
  const [ours, theirs] = lent.pair(syscalls.socketpair());
  const status = lent.pipe();
  const answer = readFrom(lent.release(status.readEnd)).setEncoding("latin1");
  const sending = sendOrder(socket, letter, fields, [status.writeEnd, theirs]);
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
  if (said === "d\n") {
    const received = Array.from({ length: count }, () => syscalls.receiveDescriptor(ours));
    if (received.every((fd) => fd >= 0)) return { descriptors: received, said };
    for (const fd of received) if (fd >= 0) syscalls.close(fd);
  }
  return { descriptors: [], said: `${sending} ${said}` };
}
