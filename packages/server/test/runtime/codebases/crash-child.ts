import { SERVER } from "../../../src/runtime/caller.ts";
import { expected, perform, type State, scripted } from "./model.ts";
import { openPlace } from "./opening.ts";

// Changes a codebase step by step, for the test that kills it. Arguments: the directory, the codebase, how many versions it
// keeps (0: all). Step N makes version N
// of the state before, so the test knows what each version must be; "done N" is what was acknowledged.
const [root = "", id = "", kept = "0"] = process.argv.slice(2);
const versions = Number(kept);
const { codebases } = await openPlace(root, { retention: { versions, bytes: 0 } });
const newest = (await codebases.get(SERVER, id)).version;
const history: State[] = [new Map()];
process.stdout.write("ready\n");
for (let step = 1; ; step++) {
  const state = history.at(-1)!;
  const operation = scripted(step, state, history, versions);
  history.push(expected(state, operation, history)!);
  if (step <= newest) continue;
  await perform(codebases, id, operation);
  process.stdout.write(`done ${step}\n`);
}
