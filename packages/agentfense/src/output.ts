import { once } from "node:events";

/** Writes to stdout no faster than it is read, so that a big tree never piles up in memory. */
export async function print(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, "drain");
}
