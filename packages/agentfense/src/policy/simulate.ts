import { compileRules, LEVEL, type Level, levelName, type Policy } from "@agentfense/permission";
import { readTextFile } from "@agentfense/sdk/project";
import { UsageError } from "../command-failure.ts";
import { print } from "../output.ts";
import { readRulesFile } from "../rules.ts";
import { paintFor, printable } from "../terminal.ts";
import { counted } from "../wording.ts";

type Needed = Exclude<Level, "none">;

interface Operation {
  readonly path: string;
  readonly needs: Needed;
}

/** `agentfense policy simulate` */
export async function simulate(
  values: { readonly against?: string | undefined; readonly json?: boolean | undefined },
  file: string,
): Promise<number> {
  if (values.against === undefined) throw new UsageError("--against AUDIT is needed: what was done");
  const policy = compileRules(await readRulesFile(file));
  const operations = highest(parseAudit(await readAudit(values.against), values.against));
  const passages = new Set(operations.filter(({ path }) => policy.decide(path).level > LEVEL.none).flatMap(waysTo));
  const isPassage = ({ path, needs }: Operation): boolean => needs === "view" && passages.has(path);
  const refused = operations.flatMap((operation) => {
    const refusal = refusalOf(policy, operation);
    return refusal === undefined || isPassage(operation) ? [] : [refusal];
  });
  if (values.json) {
    await print(`${JSON.stringify({ operations: operations.length, refused }, undefined, 2)}\n`);
  } else {
    const paint = paintFor(process.stdout, process.env);
    for (const { path, needs, has, rule, pattern } of refused) {
      const why = rule < 0 ? "no rule matches" : `rule ${rule}: ${printable(pattern)}`;
      await print(`${paint("bad", "refused")}  ${printable(path)}  needs ${needs}, has ${has} (${why})\n`);
    }
    await print(`${refused.length} of ${counted(operations.length, "path")} refused\n`);
  }
  return refused.length > 0 ? 1 : 0;
}

function refusalOf(policy: Policy, { path, needs }: Operation) {
  const { level, rule } = policy.decide(path);
  if (level >= LEVEL[needs]) return undefined;
  return { path, needs, has: levelName(level), rule, pattern: policy.rules[rule]?.pattern ?? "" };
}

/** The directories above: those that lead to something visible are shown. */
function waysTo({ path }: Operation): string[] {
  const names = path.split("/").slice(1, -1);
  return names.map((_, depth) => `/${names.slice(0, depth + 1).join("/")}`);
}

/** Each path with the most that was done with it. */
function highest(operations: readonly Operation[]): Operation[] {
  const needs = new Map<string, Needed>();
  for (const operation of operations) {
    const known = needs.get(operation.path);
    if (known === undefined || LEVEL[known] < LEVEL[operation.needs]) needs.set(operation.path, operation.needs);
  }
  return [...needs].map(([path, needed]) => ({ path, needs: needed }));
}

async function readAudit(file: string): Promise<string> {
  if (file === "-") {
    const chunks: Buffer[] = [];
    for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString("utf8");
  }
  return await readTextFile(file).catch((error: Error) => {
    throw new UsageError(`cannot read the audit ${printable(file)}: ${printable(error.message)}`);
  });
}

/** One JSON value a line, or one array of them. */
function parseAudit(text: string, file: string): Operation[] {
  const trimmed = text.trim();
  if (trimmed.startsWith("["))
    return arrayOf(trimmed, file).flatMap((value, at) => operationOf(value, `${file}[${at}]`));
  return trimmed
    .split("\n")
    .flatMap((line, at) => (line === "" ? [] : operationOf(parsed(line, `${file}:${at + 1}`), `${file}:${at + 1}`)));
}

function arrayOf(text: string, file: string): unknown[] {
  return parsed(text, file) as unknown[];
}

function parsed(text: string, at: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${printable(at)} is no JSON: ${printable((error as Error).message)}`);
  }
}

const NEXT: Readonly<Record<Level, Needed>> = { none: "view", view: "read", read: "write", write: "write" };

/** What a record of `policy learn` or an event says was done; none for events about something else. */
function operationOf(value: unknown, at: string): Operation[] {
  if (typeof value !== "object" || value === null)
    throw new UsageError(`${printable(at)} is neither a record nor an event`);
  const { path, level, type, data } = value as Record<string, unknown>;
  if (typeof path === "string" && isLevel(level) && level !== "none")
    return [{ path: workspacePath(path), needs: level }];
  if (typeof type !== "string") throw new UsageError(`${printable(at)} is neither a record nor an event`);
  if (type !== "permission_denied" || typeof data !== "object" || data === null) return [];
  const { path: denied, operation, permission } = data as Record<string, unknown>;
  if (typeof denied !== "string" || !isLevel(permission)) return [];
  // An event has the level that did not suffice: the operation took the next one at least, and changes take all.
  const changes =
    operation !== "lookup" && operation !== "open" && operation !== "getxattr" && operation !== "listxattr";
  return [{ path: workspacePath(denied), needs: changes ? "write" : NEXT[permission] }];
}

/** Events name paths as a process inside does. */
function workspacePath(path: string): string {
  return path === "/workspace" ? "/" : path.replace(/^\/workspace\//, "/");
}

function isLevel(value: unknown): value is Level {
  return typeof value === "string" && Object.hasOwn(LEVEL, value);
}
