import { configurationTable } from "./tables/configuration.ts";
import { errorTable } from "./tables/errors.ts";
import { levelTable } from "./tables/levels.ts";
import { limitTable } from "./tables/limits.ts";
import { methodTables } from "./tables/methods.ts";
import { presetTable } from "./tables/presets.ts";

/** What a document names in `<!-- table: NAME -->`. */
const TABLES = {
  configuration: configurationTable,
  errors: errorTable,
  levels: levelTable,
  limits: limitTable,
  methods: methodTables,
  presets: presetTable,
} satisfies Readonly<Record<string, () => string | Promise<string>>>;

/** Makes every table once; the function gives them by name. */
export async function tableOf(): Promise<(name: string) => string> {
  const made = new Map<string, string>();
  for (const [name, make] of Object.entries(TABLES)) made.set(name, await make());
  return (name) => {
    const table = made.get(name);
    if (table === undefined) throw new Error(`there is no table ${name}`);
    return table;
  };
}
