import { namesIn } from "@agentfense/permission";
import type { SandboxClient } from "../client/client.ts";
import type { SandboxInfo } from "../model/records.ts";
import type { LocalDirectory } from "./local-copy/local-directory.ts";

/** What a Sandbox is made of. */
export interface SandboxParts {
  readonly client: SandboxClient;
  readonly info: SandboxInfo;
  /**
   * What disposing does.
   *
   * | owner | disposed            |
   * | ----- | ------------------- |
   * | this  | it is destroyed     |
   * | other | it stays as it is   |
   */
  readonly owner: "this" | "other";
  /** The codebase was made for this sandbox and is to go with it. */
  readonly ownsCodebase: boolean;
  /** The directory that was uploaded, where there is one. */
  readonly localDirectory?: LocalDirectory | undefined;
  /** Lets go of the connection. */
  readonly release: () => Promise<void>;
}

const WORKSPACE = "/workspace";

/**
 * A path of the workspace as calls take it: "src/a.ts", "/" for the workspace itself. Without the slash in front, a directory
 * that is called "workspace" is not taken for the workspace.
 */
export function workspacePath(path: string): string {
  if (path === "") return "";
  const names = namesIn(path === WORKSPACE || path.startsWith(`${WORKSPACE}/`) ? path.slice(WORKSPACE.length) : path);
  return names.length === 0 ? "/" : names.join("/");
}
