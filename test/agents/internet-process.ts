// The internet of a test: a name server and the models' hosts, under TLS. It tells what was asked of the models, a line each, in
// DIRECTORY/requests. See machine.sh.

import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { makeCertificates, nameServer } from "../support/internet.ts";
import { fakeModel } from "./model-server.ts";

const HOSTS = ["api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com"];
const [directory = ""] = process.argv.slice(2);
const inside = (name: string): string => join(directory, name);

await eventually(() => existsSync(inside("wired")));
const { ca, ...certificate } = makeCertificates(HOSTS);
writeFileSync(inside("ca.pem"), ca);
const model = fakeModel({ path: "/workspace/src/b.ts", content: "export const b = 2;\n" }, (request) =>
  appendFileSync(inside("requests"), `${JSON.stringify(request)}\n`),
);
const server = createServer(certificate, model);
await new Promise<void>((resolve) => server.listen(443, "0.0.0.0", resolve));
await nameServer(Object.fromEntries(HOSTS.map((host, index) => [host, [`93.184.216.${10 + index}`]])), {
  address: "93.184.216.1",
  port: 53,
});
writeFileSync(inside("online"), "");
