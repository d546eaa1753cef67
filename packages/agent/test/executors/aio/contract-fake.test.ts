import { afterAll } from "vitest";
import { AioExecutor } from "../../../src/executors/aio/aio-executor.ts";
import { LANGUAGES } from "../../../src/types.ts";
import { describeExecutor } from "../contract.ts";
import { type Awkwardness, FakeAio } from "./fake-aio.ts";

const fakes: FakeAio[] = [];
afterAll(async () => {
  for (const fake of fakes) await fake[Symbol.asyncDispose]();
});

const VERSIONS: Readonly<Record<string, Awkwardness>> = {
  "a server with bash": {},
  "a server with shell sessions only, quick to call a command silent": { without: ["bash"], noChangeMs: 300 },
};

for (const [name, awkwardness] of Object.entries(VERSIONS)) {
  describeExecutor(`AioExecutor on ${name}`, {
    type: "aio",
    languages: LANGUAGES,
    open: async () => {
      const fake = await FakeAio.open(awkwardness);
      fakes.push(fake);
      return new AioExecutor({ baseUrl: fake.url });
    },
  });
}
