import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { CommandFailure } from "./command-failure.ts";

const NAME = "@agentfense/agent";

/** The module, or undefined where the package of the agent layer, which is installed apart, is not there. */
export async function ifAgentLayer<Module>(load: () => Promise<Module>): Promise<Module | undefined> {
  try {
    return await load();
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** A module that imports the agent layer; where it is not installed, the user is told how this command gets it. */
export async function needAgentLayer<Module>(command: string, load: () => Promise<Module>): Promise<Module> {
  const module = await ifAgentLayer(load);
  if (module !== undefined) return module;
  throw new CommandFailure(`${command} needs the package ${NAME}, which is not installed`, {
    hint: installLine(command, import.meta.dirname),
  });
}

/**
 * The command that installs the agent layer for this program, in its own version, by where the program lies: in a project, in
 * the folder of what is installed for everybody (which has no package.json), or where npx keeps what it fetched for a call. A
 * project that has this program from a packed file gets the layer from the one that was packed beside it.
 */
export function installLine(command: string, directory: string): string {
  const wanted = `${NAME}@${manifest.version}`;
  const outermost = directory.split(`${sep}node_modules${sep}`, 1)[0]!;
  if (dirname(outermost).endsWith(`${sep}_npx`))
    return `npx -p agentfense@${manifest.version} -p ${wanted} agentfense ${command}`;
  const isProject = outermost === directory || existsSync(join(outermost, "package.json"));
  const packed = isProject ? packedBeside(outermost) : undefined;
  return `npm install ${isProject ? "" : "--global "}${packed ?? wanted}`;
}

/** As `npm run pack` lays them out; npm notes in a project where a packed file was. */
function packedBeside(project: string): string | undefined {
  try {
    const { dependencies } = JSON.parse(readFileSync(join(project, "package.json"), "utf8")) as {
      readonly dependencies?: Readonly<Record<string, string>>;
    };
    const [, own] = /^file:(.+\.tgz)$/.exec(dependencies?.agentfense ?? "") ?? [];
    if (own === undefined) return undefined;
    const layer = resolve(project, dirname(own), "optional", `agentfense-agent-${manifest.version}.tgz`);
    return existsSync(layer) ? layer : undefined;
  } catch {
    return undefined;
  }
}

function isMissing(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message: string };
  return code === "ERR_MODULE_NOT_FOUND" && message.includes(`'${NAME}'`);
}
