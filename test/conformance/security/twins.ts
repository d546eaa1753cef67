import type { Rule } from "@agentfense/permission";
import type { Arena } from "../../support/arena.ts";
import { O } from "../../support/constants.ts";
import type { Probe } from "../../support/probe.ts";
import type { Tree } from "../../support/tree.ts";
import type { TestWorkspace, WorkspaceOptions } from "../../support/workspace.ts";
import { codebase, RULES } from "./codebase.ts";
import type { Twins } from "./outcomes.ts";

/** A file and a directory in every twin that belong to the agent: made through the mount, free to move. */
export const OWN = "/work/own.txt";
export const OWN_DIRECTORY = "/work/own-directory";

/** Opens the codebase of the attacks twice: with the hidden things and without them. */
export async function openTwins(
  arena: Arena,
  options: { extra?: Tree; rules?: readonly Rule[] } & Pick<WorkspaceOptions, "delta" | "quota"> = {},
): Promise<Twins> {
  const { extra, ...rest } = options;
  const open = (hidden: boolean) =>
    arena.open({ rules: RULES, ...rest, lower: codebase({ hidden, ...(extra === undefined ? {} : { extra }) }) });
  const twins = { there: await open(true), absent: await open(false) };
  if (options.delta !== false) for (const twin of Object.values(twins)) await makeOwn(arena.probe, twin);
  return twins;
}

async function makeOwn(probe: Probe, workspace: TestWorkspace): Promise<void> {
  const made = await probe.errnos([
    ["writeFile", workspace.at(OWN), "mine\n"],
    ["mkdirat", workspace.at(OWN_DIRECTORY)],
    ["writeFile", workspace.at(`${OWN_DIRECTORY}/child.txt`), "mine too\n"],
  ]);
  if (made.some((errno) => errno !== "OK")) throw new Error(`the agent cannot create in /work: ${made}`);
}

/** Runs something with a descriptor of a directory, closed afterwards so that the mount is not busy. */
export async function withDirectory<T>(probe: Probe, path: string, use: (directory: number) => Promise<T>): Promise<T> {
  const { ret, errno } = await probe.call("openat", path, O.RDONLY | O.DIRECTORY);
  if (ret < 0) throw new Error(`${path}: ${errno}`);
  try {
    return await use(ret);
  } finally {
    await probe.call("close", ret);
  }
}
