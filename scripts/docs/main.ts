// Makes the blocks and tables of the documents anew from the files they come from; with --check it only says which
// documents differ, and fails if one does. test/docs runs those files.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { documents, readDocument, upToDate } from "./documents.ts";
import { REPOSITORY } from "./source.ts";

const check = process.argv.includes("--check");
for (const path of documents()) {
  const wanted = await upToDate(path);
  if (wanted === readDocument(path)) continue;
  if (check) process.exitCode = 1;
  else writeFileSync(join(REPOSITORY, path), wanted);
  process.stdout.write(`${path}: ${check ? "differs from its sources; run node scripts/docs/main.ts" : "updated"}\n`);
}
