import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from "node:fs";
import { findProcess, withDescendants } from "./host-processes.ts";

/** A box may have any number of sockets, processes and descriptors; more than these are not looked at. */
const TABLE_BYTES = 256 * 1024;
const MOST_PROCESSES = 200;
const MOST_DESCRIPTORS = 1024;
/** How much of a program's name the kernel has. */
const NAME_BYTES = 15;

/**
 * The name of the program in a box that has the socket with this local port, as the kernel shows it to us. Any program can call itself
 * what it likes: it is a hint for people. Nothing when it is not found quickly.
 */
export function socketOwner(initPid: number, protocol: "tcp" | "udp", port: number): string | undefined {
  const inode = inodeOf(initPid, protocol, port);
  const init = findProcess(initPid);
  if (inode === undefined || init === undefined) return undefined;
  const wanted = `socket:[${inode}]`;
  let left = MOST_DESCRIPTORS;
  // The one that asks is mostly among those that began last.
  for (const { pid } of withDescendants([init], MOST_PROCESSES).reverse()) {
    const descriptors = orNothing(() => readdirSync(`/proc/${pid}/fd`)) ?? [];
    left -= descriptors.length;
    if (left < 0) return undefined;
    const has = descriptors.some((fd) => orNothing(() => readlinkSync(`/proc/${pid}/fd/${fd}`)) === wanted);
    if (has) return nameOf(pid);
  }
  return undefined;
}

/** In a table of /proc/PID/net: the second column is the local address, the tenth the inode, which is 0 when no process has it any more. */
function inodeOf(pid: number, protocol: "tcp" | "udp", port: number): string | undefined {
  const place = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  for (const version of ["", "6"]) {
    for (const line of beginningOf(`/proc/${pid}/net/${protocol}${version}`).split("\n")) {
      const columns = line.trim().split(/\s+/);
      if (columns[1]?.endsWith(place) && columns[9] !== undefined && columns[9] !== "0") return columns[9];
    }
  }
  return undefined;
}

function nameOf(pid: number): string | undefined {
  const name = orNothing(() => readFileSync(`/proc/${pid}/comm`, "latin1"))?.replace(/\n$/, "");
  return name?.slice(0, NAME_BYTES).replace(/[^\x20-\x7e]/g, "?");
}

function beginningOf(path: string): string {
  const fd = orNothing(() => openSync(path, "r"));
  if (fd === undefined) return "";
  const table = Buffer.alloc(TABLE_BYTES);
  let length = 0;
  try {
    for (let read = -1; read !== 0 && length < TABLE_BYTES; length += read) {
      read = readSync(fd, table, length, TABLE_BYTES - length, null);
    }
  } catch {
    // its process has ended
  } finally {
    closeSync(fd);
  }
  return table.toString("latin1", 0, length);
}

/** Processes come and go. */
function orNothing<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
