import { openSqliteStore } from "../../../src/runtime/store/sqlite/open-sqlite-store.ts";
import { codebase, event, file, journal } from "./records.ts";

// Writes to a store until it is killed, and says on stdout what was acknowledged: one number per finished round.

const [path = ""] = process.argv.slice(2);
const store = await openSqliteStore({ path });
await store.insertCodebase(codebase({ id: "cb_1" }));
for (let round = 1; ; round++) {
  const after = file(`f${round}`, { version: round });
  await store.beginChange(journal("cb_1", round, [{ path: after.path, before: undefined, after }]));
  await store.finishChange("cb_1");
  await store.settleChange("cb_1");
  await store.appendEvents([event({ data: { round } })]);
  process.stdout.write(`${round}\n`);
}
