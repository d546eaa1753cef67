// The internet of a test: a name server and the models' hosts, under TLS. DIRECTORY/wanted.json says what the models want; what was
// asked of them is told in DIRECTORY/requests, a line each. See machine.sh.

import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { makeCertificates, nameServer } from "../support/internet.ts";
import { fakeModel, type Wanted } from "./model-server.ts";

const MODELS = ["api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com"];
/** Another host is there as well: what does not get to it was kept from it. */
const HOSTS = [...MODELS, "example.com"];
const [directory = ""] = process.argv.slice(2);
const inside = (name: string): string => join(directory, name);

await eventually(() => existsSync(inside("wired")));
const { ca, ...certificate } = makeCertificates(HOSTS);
writeFileSync(inside("ca.pem"), ca);
const wanted = JSON.parse(readFileSync(inside("wanted.json"), "utf8")) as Wanted;
const model = fakeModel(wanted, (request) => appendFileSync(inside("requests"), `${JSON.stringify(request)}\n`));
const server = createServer(certificate, model);
await new Promise<void>((resolve) => server.listen(443, "0.0.0.0", resolve));
await nameServer(Object.fromEntries(HOSTS.map((host, index) => [host, [`93.184.216.${10 + index}`]])), {
  address: "93.184.216.1",
  port: 53,
});
writeFileSync(inside("online"), "");
