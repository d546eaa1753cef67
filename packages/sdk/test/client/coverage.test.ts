import { CodebaseService } from "@agentfense/protocol/codebase";
import { EventService } from "@agentfense/protocol/event";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { SystemService } from "@agentfense/protocol/system";
import { expect, test } from "vitest";
import { SandboxClient } from "../../src/index.ts";

/** Methods of the contract that the client calls by another name. */
const RENAMED: Readonly<Record<string, string>> = { uploadFiles: "uploadFile", forwardPort: "connectPort" };

/** What the client offers besides: several calls in one, the owner's words, and itself. */
const ADDED = [
  ...["uploadDirectory", "uploadSymlink", "downloadStream", "readFileBytes", "closeSession", "createFromSnapshot"],
  ...["constructor", "engine", "name", "close"],
];

const SERVICES = [CodebaseService, SandboxService, EventService, SystemService];

test("the client has every method of the contract, and nothing that nobody meant", () => {
  const methods = SERVICES.flatMap((service) =>
    service.methods.map(({ localName }) => RENAMED[localName] ?? localName),
  );
  expect(Object.getOwnPropertyNames(SandboxClient.prototype).sort()).toEqual([...methods, ...ADDED].sort());
});
