import { release } from "node:os";
import { findProgram } from "../backend/find-program.ts";
import { readBwrap, readNamespaces } from "./facts/bwrap.ts";
import { readDocker } from "./facts/docker.ts";
import type { HostFacts } from "./facts/facts.ts";
import { readFuseDevice, readFusermount, readPassthroughBuilt, readSeccompActions } from "./facts/host.ts";
import { readLimits } from "./facts/limits.ts";
import type { Finding } from "./finding.ts";
import { NETWORK_HELPERS } from "./judgement/bwrap.ts";
import { judgeHost } from "./judgement/judge.ts";

/** What this host has and lacks for running sandboxes. Changes nothing; takes a second at most where all is well. */
export async function examineHost(): Promise<readonly Finding[]> {
  return judgeHost(await readHost());
}

/** Whom root's boxes belong to does not matter for trying one, as long as it is not root. */
const NOBODY = { uid: 65_534, gid: 65_534 };

async function readHost(): Promise<HostFacts> {
  const isRoot = process.geteuid?.() === 0;
  const kernelRelease = release();
  const bwrap = await readBwrap();
  return {
    nodeVersion: process.versions.node,
    architecture: process.arch,
    kernelRelease,
    isRoot,
    fuseDevice: await readFuseDevice(),
    fusermount: await readFusermount(),
    passthroughBuilt: await readPassthroughBuilt(kernelRelease),
    seccompActions: await readSeccompActions(),
    bwrap,
    namespaces: await readNamespaces(bwrap?.path, isRoot ? NOBODY : {}),
    limits: await readLimits(),
    perl: await findProgram("perl"),
    setpriv: await findProgram("setpriv"),
    networkHelpers: await installed(Object.keys(NETWORK_HELPERS)),
    docker: await readDocker(process.env),
  };
}

async function installed(names: readonly string[]): Promise<string[]> {
  const paths = await Promise.all(names.map((name) => findProgram(name)));
  return names.filter((_, index) => paths[index] !== undefined);
}
