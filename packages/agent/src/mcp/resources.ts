import { type AuditEvent, type Change, SandboxError, type SandboxErrorCode } from "@agentfense/sdk";
import { clip } from "@agentfense/sdk/tool-kit";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import {
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  type Resource,
} from "@modelcontextprotocol/sdk/types.js";
import type { McpSource, RecordedSandbox } from "./source.ts";

const CHANGES = "agentfense://changes";
const CHANGED_FILE = `${CHANGES}/`;
const AUDIT = "agentfense://audit";

const MOST_CHANGES = 10_000;
const MOST_LISTED = 1000;
const MOST_EVENTS = 1000;
const MOST_DIFF_CHARACTERS = 1_000_000;
/** As the specification has it for a resource that is not there. */
const RESOURCE_NOT_FOUND = -32002;

/** What was changed, and what happened. */
export function answerResources(mcp: McpServer, { world, sandbox }: McpSource): void {
  mcp.server.setRequestHandler(ListResourcesRequestSchema, async (_, { signal }) => ({
    resources: [
      ...(sandbox === undefined ? [] : [CHANGES_RESOURCE]),
      AUDIT_RESOURCE,
      ...(sandbox === undefined ? [] : await changedFiles(sandbox, signal)),
    ],
  }));
  mcp.server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: sandbox === undefined ? [] : [CHANGED_FILE_TEMPLATE],
  }));
  mcp.server.setRequestHandler(ReadResourceRequestSchema, async ({ params: { uri } }, { signal }) => {
    const read = async (): Promise<readonly [mimeType: string, text: string]> => {
      if (uri === AUDIT) {
        return ["application/json", asJson(sandbox === undefined ? world.history : await pastEvents(sandbox, signal))];
      }
      if (sandbox === undefined) throw notFound(uri);
      if (uri === CHANGES) return ["application/json", asJson(await someChanges(sandbox, MOST_CHANGES, signal))];
      return ["text/x-diff", await diffOf(sandbox, uri, signal)];
    };
    const [mimeType, text] = await read();
    return { contents: [{ uri, mimeType, text: text.toWellFormed() }] };
  });
}

const CHANGES_RESOURCE: Resource = {
  uri: CHANGES,
  name: "changes",
  title: "Changed files",
  description: "What was changed in the workspace and has not been taken over",
  mimeType: "application/json",
};

const AUDIT_RESOURCE: Resource = {
  uri: AUDIT,
  name: "audit",
  title: "Audit trail",
  description: "What happened, the newest last",
  mimeType: "application/json",
};

const CHANGED_FILE_TEMPLATE = {
  uriTemplate: `${CHANGES}/{+path}`,
  name: "changed-file",
  title: "A changed file",
  description: "What was changed in a file, as a unified diff",
  mimeType: "text/x-diff",
};

async function changedFiles(sandbox: RecordedSandbox, signal: AbortSignal): Promise<Resource[]> {
  const changes = await someChanges(sandbox, MOST_LISTED, signal);
  return changes
    .filter(({ type }) => type === "file")
    .map(({ kind, path, size }) => ({
      uri: uriOf(path),
      name: path.slice(1).toWellFormed(),
      description: kind,
      mimeType: "text/x-diff",
      size,
    }));
}

async function someChanges(sandbox: RecordedSandbox, most: number, signal: AbortSignal): Promise<Change[]> {
  const changes: Change[] = [];
  for await (const change of sandbox.changes({ fold: true, signal })) {
    if (changes.length === most) break;
    changes.push(change);
  }
  return changes;
}

/** A name is bytes; those that no URI can hold are replaced, and the file is not to be had in this way. */
function uriOf(path: string): string {
  return CHANGED_FILE + path.slice(1).toWellFormed().split("/").map(encodeURIComponent).join("/");
}

async function diffOf(sandbox: RecordedSandbox, uri: string, signal: AbortSignal): Promise<string> {
  const path = pathIn(uri);
  if (path === undefined) throw notFound(uri);
  try {
    for await (const { change, unified, binary } of sandbox.diff({ paths: [path], signal })) {
      if (change.path !== path) continue;
      if (unified !== "") return clip(unified, MOST_DIFF_CHARACTERS);
      return `${binary ? "Binary file" : "File"} ${path} ${change.kind} (${change.size} bytes)\n`;
    }
  } catch (error) {
    if (!(error instanceof SandboxError && NO_CHANGE.has(error.code))) throw error;
  }
  throw notFound(uri);
}

/** There is no such change, or no such path. */
const NO_CHANGE: ReadonlySet<SandboxErrorCode> = new Set<SandboxErrorCode>(["FILE_NOT_FOUND", "INVALID_ARGUMENT"]);

/** "/src/a.ts"; undefined for what names no file. */
function pathIn(uri: string): string | undefined {
  if (!uri.startsWith(CHANGED_FILE)) return undefined;
  try {
    return `/${decodeURIComponent(uri.slice(CHANGED_FILE.length))}`;
  } catch {
    return undefined;
  }
}

type ToldEvent = Pick<AuditEvent, "sequence" | "time" | "type" | "level" | "data">;

async function pastEvents(sandbox: RecordedSandbox, signal: AbortSignal): Promise<ToldEvent[]> {
  const events: ToldEvent[] = [];
  for await (const event of sandbox.events({ follow: false, signal })) {
    events.push(told(event));
    if (events.length > MOST_EVENTS) events.shift();
  }
  return events;
}

/** Whoever reads this may be the agent: rules can name what they hide, and whose key it was is not his business. */
function told({ sequence, time, type, level, data }: AuditEvent): ToldEvent {
  const { permissions: _rules, ...rest } = data;
  return { sequence, time, type, level, data: rest };
}

function asJson(value: unknown): string {
  return JSON.stringify(value, undefined, 1);
}

function notFound(uri: string): McpError {
  return new McpError(RESOURCE_NOT_FOUND, `there is no resource ${clip(uri, 200)}`);
}
