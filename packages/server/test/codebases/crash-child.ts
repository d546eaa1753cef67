import { perform, readVersion, type State, scripted } from "./model.ts";
import { openPlace } from "./opening.ts";

// Changes a codebase step by step, for the test that kills it. Arguments: the directory, the codebase. Step N makes version N
// of the state before, so the test knows what each version must be; "done N" is what was acknowledged.
const [root = "", id = ""] = process.argv.slice(2);
const { codebases } = await openPlace(root);
const newest = (await codebases.get({ ownerId: undefined, role: "admin" }, id)).version;
const history: State[] = [new Map()];
for (let version = 1; version <= newest; version++) history.push(await readVersion(codebases, id, version));
process.stdout.write("ready\n");
for (let step = newest + 1; ; step++) {
  await perform(codebases, id, scripted(step, history.at(-1)!, history));
  process.stdout.write(`done ${step}\n`);
  history.push(await readVersion(codebases, id, step));
}
