import { Sandbox } from "@agentfense/sdk";
import { EmbeddedEngine } from "agentfense";
import { afterAll, beforeAll, describe, onTestFinished } from "vitest";
import { TestServer } from "../../support/server.ts";
import { describePorts } from "./ports.suite.ts";

describe("ports of sandboxes on a server", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());
  describePorts(async () => {
    const sandbox = await Sandbox.create({ endpoint: server.grpc });
    onTestFinished(() => sandbox[Symbol.asyncDispose]());
    return sandbox;
  });
});

describe("ports of sandboxes in this process", () => {
  let engine: EmbeddedEngine;
  beforeAll(async () => {
    engine = await EmbeddedEngine.open();
  });
  afterAll(() => engine?.[Symbol.asyncDispose]());
  describePorts(async () => {
    const sandbox = await Sandbox.create({ engine });
    onTestFinished(() => sandbox[Symbol.asyncDispose]());
    return sandbox;
  });
});
