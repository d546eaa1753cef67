import { createHash } from "node:crypto";
import { homedir } from "node:os";
import { basename, isAbsolute, join } from "node:path";

/** Where an agent keeps what is its own, for one project: outside of the project, and for this user alone. */
export interface AgentPlace {
  /** Holds both; not made yet, perhaps. */
  readonly directory: string;
  /** Its login, settings and caches. */
  readonly home: string;
  /** Changes that are not in the project yet. */
  readonly delta: string;
}

/** A project that was moved is another one. */
export function agentPlace(agent: string, project: string, env: NodeJS.ProcessEnv): AgentPlace {
  const { XDG_STATE_HOME: state = "" } = env;
  const base = isAbsolute(state) ? state : join(homedir(), ".local/state");
  const digest = createHash("sha256").update(project).digest("hex").slice(0, 12);
  // The name is for people who look; two projects of the same name differ in the rest.
  const name = `${basename(project)
    .replace(/[^\w.-]/g, "_")
    .slice(0, 40)}-${digest}`;
  const directory = join(base, "agentfense/agents", agent, name);
  return { directory, home: join(directory, "home"), delta: join(directory, "delta") };
}
