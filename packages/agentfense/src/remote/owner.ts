import { userInfo } from "node:os";
import type { Server } from "./server.ts";

/** Whose a new codebase is: who the option says, else who the key says, else who we are on this machine. */
export function chooseOwner(server: Server, given: string | undefined): string {
  if (given !== undefined) return given;
  return server.withKey ? "" : userInfo().username;
}
