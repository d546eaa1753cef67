import { realpath, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname } from "node:path";
import type { Rule } from "@agentfense/permission";
import type { WorkspaceSpecification } from "@agentfense/server/isolation";
import { printable } from "../terminal.ts";
import { findToolchains, isAtOrBelow, type LeftOut, secretRules } from "./find.ts";

/** A sandbox's share of the toolchains of whoever runs this program. */
export interface ShownToolchains {
  readonly shown: readonly string[];
  /** Guarded as the workspace is, at the same paths as here: nothing but what is shown exists there, and nothing can be written. */
  readonly workspaces: readonly WorkspaceSpecification[];
  readonly env: Readonly<Record<string, string>>;
  readonly leftOut: readonly LeftOut[];
}

/** A home that is not there has nothing in it. */
const NOWHERE = "/nonexistent";
/** Places that are the box's own. */
const TAKEN = ["/home/agent", "/workspace"];
/** In these a name says nothing about secrets: credentials.py is a program there, cacert.pem a list of authorities. */
const OF_PACKAGES = "{lib,lib64,libexec,share,node_modules,site-packages,dist-packages}";
const ABOVE_SECRETS = 101;
/** No program's part is called so, wherever it lies. */
const NEVER: readonly Rule[] = [
  "**/{.ssh,.gnupg,.aws,.azure,.kube}/**",
  "**/{id_rsa,id_dsa,id_ecdsa,id_ed25519,.npmrc,.pypirc,.netrc,.git-credentials,.vault-token}",
].map((pattern) => ({ pattern, permission: "none", priority: ABOVE_SECRETS + 1 }));

/** What a sandbox of this directory has to be shown for its commands to find what the user's shell finds. */
export async function toolchainsFor(workspace: string): Promise<ShownToolchains> {
  const home = await realpath(homedir()).catch(() => NOWHERE);
  const { shown, env, leftOut } = await findToolchains({ env: process.env, home, workspace });
  const places = new Map<string, { readonly path: string; readonly isDirectory: boolean }[]>();
  const hidden: LeftOut[] = [];
  for (const path of shown) {
    const isDirectory = (await stat(path)).isDirectory();
    const top = isAtOrBelow(path, home) ? home : isDirectory ? path : dirname(path);
    if (TAKEN.some((taken) => isAtOrBelow(top, taken) || isAtOrBelow(taken, top))) {
      hidden.push({ path, reason: "the sandbox has something of its own there" });
    } else {
      const outer = [...places.keys()].find((place) => isAtOrBelow(top, place)) ?? top;
      places.set(outer, [...(places.get(outer) ?? []), { path, isDirectory }]);
    }
  }
  return {
    shown: shown.filter((path) => !hidden.some((one) => one.path === path)),
    env,
    leftOut: [...leftOut, ...hidden],
    workspaces: [...places].map(([top, entries]) => ({
      target: top,
      lowers: [top],
      rules: [...secretRules(), ...NEVER, ...entries.flatMap((entry) => rulesOf(top, entry))],
    })),
  };
}

function rulesOf(top: string, { path, isDirectory }: { path: string; isDirectory: boolean }): Rule[] {
  const relative = path.slice(top.length);
  if (!isDirectory) return [{ pattern: relative, type: "file", permission: "read" }];
  return [
    { pattern: `${relative}/**`, permission: "read" },
    { pattern: `${relative}/**/${OF_PACKAGES}/**`, permission: "read", priority: ABOVE_SECRETS },
    { pattern: `${relative}/**/{cert,cacert,ca-bundle}.pem`, permission: "read", priority: ABOVE_SECRETS },
  ];
}

/** For one sentence. */
export function describeLeftOut(leftOut: readonly LeftOut[]): string {
  return leftOut.map(({ path, reason }) => `${printable(path)} (${reason})`).join(", ");
}
