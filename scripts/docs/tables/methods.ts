import { readFileSync } from "node:fs";
import { join } from "node:path";
import { http } from "@agentfense/protocol/annotations";
import { CodebaseService } from "@agentfense/protocol/codebase";
import { EventService } from "@agentfense/protocol/event";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { SystemService } from "@agentfense/protocol/system";
import { type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { REPOSITORY } from "../source.ts";
import { code, table } from "./table.ts";

const SERVICES: readonly DescService[] = [CodebaseService, SandboxService, EventService, SystemService];

/** For each service every method, with its messages, its REST route and what the contract says about it. */
export function methodTables(): string {
  return SERVICES.map((service) => {
    const comments = commentsOf(service);
    const rows = service.methods.map((method) => [
      code(method.name),
      `${messageOf(method, "input")} → ${messageOf(method, "output")}`,
      routeOf(method),
      AGAIN[method.idempotency],
      comments.get(method.name) ?? "",
    ]);
    const heads = ["method", "messages", "REST", "again", "meaning"];
    return `### ${service.typeName}\n\n${comments.get(service.name) ?? ""}\n\n${table(heads, rows)}`;
  }).join("\n\n");
}

/** May a client repeat the call when it does not know whether it arrived? */
const AGAIN: Readonly<Record<Idempotency, string>> = {
  [Idempotency.IDEMPOTENCY_UNKNOWN]: "",
  [Idempotency.NO_SIDE_EFFECTS]: "reads",
  [Idempotency.IDEMPOTENT]: "yes",
};

function messageOf(method: DescMethod, side: "input" | "output"): string {
  const streams = { input: ["client_streaming", "bidi_streaming"], output: ["server_streaming", "bidi_streaming"] };
  return `${streams[side].includes(method.methodKind) ? "stream of " : ""}${code(method[side].name)}`;
}

function routeOf(method: DescMethod): string {
  if (!hasOption(method, http)) return "none";
  const rule = getOption(method, http);
  if (rule.pattern.case === undefined) throw new Error(`${method.name} has a rule without a path`);
  return code(`${rule.pattern.case.toUpperCase()} ${rule.pattern.value}`);
}

/** Descriptors carry no comments at run time; those directly above a service or a method are read from the contract. */
function commentsOf(service: DescService): ReadonlyMap<string, string> {
  const comments = new Map<string, string>();
  let above: string[] = [];
  for (const line of readFileSync(join(REPOSITORY, "proto", `${service.file.name}.proto`), "utf8").split("\n")) {
    const [, comment] = line.match(/^\s*\/\/ (.*)$/) ?? [];
    const [, name] = line.match(/^\s*(?:service|rpc) (\w+)/) ?? [];
    if (name !== undefined && above.length > 0) comments.set(name, above.join(" "));
    above = comment === undefined ? [] : [...above, comment];
  }
  return comments;
}
